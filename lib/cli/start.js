/**
 * Starts a command: `node lib/cli/start.js generate …`. It is the program that `npm run build:commands` has made where
 * its sources are unchanged, which starts in half of the time; else the sources.
 */
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isCurrent } from './browser/made.js';

const [command] = process.argv.splice(2, 1);
const root = fileURLToPath(new URL('../..', import.meta.url));
const made = path.join(root, '.commands');
if (await isCurrent(made, root)) {
  await import(pathToFileURL(path.join(made, 'cli', `${command}.js`)).href);
} else {
  const { register } = await import('tsx/esm/api');
  register();
  await import('./dev/prepare.ts');
  await import(`./${command}.ts`);
}
