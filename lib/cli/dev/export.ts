/** `npm run export`: the app without the API, in `out-static/`. */
import path from 'node:path';
import { refuseMore, runCommand } from '../arguments';
import { root } from '../paths';
import { basePathOf, exportApp } from './export-app';

const help = `npm run export -- [--base-path PATH] [--help]

Builds the app without the API in out-static/, for any static host.

  --base-path PATH   path below which the host serves it, such as /kinora; by default the root of the host
`;

const optionTypes = {
  'base-path': { type: 'string', default: '/' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

process.exitCode = await runCommand('export', help, optionTypes, async (args) => {
  refuseMore('export', args.positionals);
  const basePath = basePathOf(args.values['base-path']);
  const bytes = await exportApp(path.join(root, 'out-static'), basePath);
  const size = `${(bytes / 1e6).toFixed(0)} MB`;
  process.stdout.write(
    basePath === ''
      ? `out-static/ has the app, ${size}, for any static host: npx serve out-static\n`
      : `out-static/ has the app, ${size}, for a static host that serves it at ${basePath}/\n`,
  );
  return 0;
});
