/** `npm start` without Next, as a program that tests start, signal and kill. */
import { runNode } from '../http/node';

try {
  await runNode({
    environment: process.env,
    acceptTerms: process.argv.includes('--accept-terms'),
    pages: async () => ({
      handle: async (_request, response) => {
        response.end('a page');
      },
      close: async () => undefined,
    }),
    print: (line) => process.stderr.write(`${line}\n`),
  });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exit(1);
}
