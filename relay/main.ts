/**
 * `npm start`: one node, with the app. `npm run dev` is the same with `--dev`. Settings come from the
 * environment; stdout is the log, in JSON lines, and stderr is for people.
 */
import { parseArgs } from 'node:util';
import { openNext } from './http/next';
import { runNode } from './http/node';

const help = `npm start -- [options]: the server, with pages and API.

  --accept-terms   you accept the terms of use (/terms): the first start then prints keys
  --dev            the pages from their sources, as npm run dev
  -h, --help       this text
Settings come from the environment; relay/README.md has a table of them.
`;
const print = (line: string) => process.stderr.write(`${line}\n`);

try {
  const flag = { type: 'boolean' } as const;
  const options = { 'accept-terms': flag, dev: flag, help: { ...flag, short: 'h' } } as const;
  const { values } = parseArgs({ options });
  if (values.help) process.stdout.write(help);
  else {
    await runNode({
      environment: process.env,
      acceptTerms: values['accept-terms'] ?? false,
      pages: (at) => openNext({ dev: values.dev ?? false, ...at }),
      print,
    });
  }
} catch (error) {
  print(describe(error));
  process.exit(1);
}

/** The message of a failed start, with that of its cause, or where the options are explained. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\n${error.cause.message}` : '';
  const isUsage = 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
  return `${error.message}${isUsage ? '\nSee npm start -- --help.' : cause}`;
}
