import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { exitCode, signalTree, startChild, startFlags, stopTree } from '../../lib/cli/process';

const entry = fileURLToPath(new URL('./node-main.ts', import.meta.url));
const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;

/** A node of the relay in a process of its own, without Next: it can be killed. */
export interface NodeProcess {
  readonly origin: string;
  /** Of the first start on this database; null at later ones. */
  readonly firstStart: { readonly apiKey: string; readonly workerToken: string } | null;
  /** `SIGKILL`, and waits for its end. */
  kill(): Promise<void>;
  /** `SIGTERM`, and waits for its end. @returns its exit code */
  stop(): Promise<number>;
}

/**
 * Starts a node and waits until it is open. It ends with this process.
 *
 * @param environment settings of relay/config.ts; `PORT` 0 takes a free one
 * @throws Error with its output when it does not start
 */
export async function startNodeProcess(
  environment: Readonly<Record<string, string>>,
): Promise<NodeProcess> {
  const child = startChild([...startFlags(), '--import', loader, entry], {
    env: { NODE_ENV: 'production', ...environment },
    cwd: path.dirname(path.dirname(path.dirname(entry))),
  });
  const endWithUs = () => signalTree(child, 'SIGKILL');
  process.once('exit', endWithUs);
  void exitCode(child).finally(() => process.off('exit', endWithUs));
  const { origin, firstStart } = await opened(child);
  return {
    origin,
    firstStart,
    async kill() {
      signalTree(child, 'SIGKILL');
      await exitCode(child);
    },
    async stop() {
      await stopTree(child, 15_000);
      return exitCode(child);
    },
  };
}

function opened(child: ChildProcess): Promise<Pick<NodeProcess, 'origin' | 'firstStart'>> {
  let output = '';
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const line = output.split('\n').find((text) => text.startsWith('OPEN '));
      if (line && output.includes(`${line}\n`)) resolve(JSON.parse(line.slice(5)));
    });
    child.once('exit', (code) => reject(new Error(`The node ended with ${code}:\n${output}`)));
  });
}
