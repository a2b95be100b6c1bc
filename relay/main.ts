/**
 * `npm start`: one node, with the app. `npm run dev` is the same with `--dev`. With
 * `--accept-terms` the operator accepts the terms of use, so that the first start makes keys. Settings
 * come from the environment; stdout is the log, in JSON lines, and stderr is for people.
 */
import { openNext } from './http/next';
import { runNode } from './http/node';

const options = process.argv.slice(2);
const print = (line: string) => process.stderr.write(`${line}\n`);

try {
  await runNode({
    environment: process.env,
    acceptTerms: options.includes('--accept-terms'),
    pages: (at) => openNext({ dev: options.includes('--dev'), ...at }),
    print,
  });
} catch (error) {
  print(describe(error));
  process.exit(1);
}

/** The message of a failed start, with that of its cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\n${error.cause.message}` : '';
  return `${error.message}${cause}`;
}
