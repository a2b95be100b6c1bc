/** `npm start`: the server that `npm run build` compiled. `npm run dev` runs its sources, relay/main.ts. */
import { existsSync } from 'node:fs';

const program = new URL('../.next/relay/main.mjs', import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  console.error('There is no build of the app yet. Run npm run build first.');
  process.exitCode = 1;
}
