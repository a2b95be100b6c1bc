/** `npm run export`: the app without the API, in `out-static/`. */
import path from 'node:path';
import { readHelpOnly } from './arguments';
import { exportApp } from './export-app';
import { root } from './paths';

readHelpOnly(
  'export',
  `npm run export -- [--help]

Builds the app without the API in out-static/, for any static host.
`,
);

const bytes = await exportApp(path.join(root, 'out-static'));
process.stdout.write(
  `out-static/ has the app, ${(bytes / 1e6).toFixed(0)} MB, for any static host: npx serve out-static\n`,
);
