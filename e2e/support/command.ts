import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import { root } from '../../lib/cli/paths';
import { exitCode, saidBy, signalTree, startChild } from '../../lib/cli/process';

/** A command of ours as it runs, with no terminal. */
export interface RunningCommand {
  /** Where it was started. */
  readonly folder: string;
  /** What it has printed so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly code: Promise<number>;
  /** Ends it as Ctrl-C does, or as a service manager would. */
  end(signal: 'SIGINT' | 'SIGTERM'): void;
}

/**
 * Starts a command of `lib/cli` as npm does, on the GPU that the processor plays.
 *
 * @param folder where the person stands; made if need be
 */
export async function startCommand(
  command: 'generate' | 'models' | 'worker',
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningCommand> {
  await mkdir(folder, { recursive: true });
  const script = path.join(root, 'lib', 'cli', `${command}.ts`);
  // As the scripts of package.json do. The `tsx` program would kill a command that is too busy to hear
  // of a signal within 60 ms, and nothing could be handed back or cleared away.
  const child = startChild(['--import', 'tsx/esm', script, ...args], {
    cwd: folder,
    // npm says in INIT_CWD where the person stands.
    env: { KINORA_GPU: 'software', INIT_CWD: folder, ...env },
  });
  // At `exit` a part of what it said may still be on its way.
  const ended = exitCode(child).then(async (code) => {
    await Promise.all([child.stdout, child.stderr].map((stream) => stream && finished(stream)));
    return code;
  });
  return {
    folder,
    stdout: saidBy(child.stdout),
    stderr: saidBy(child.stderr),
    code: ended,
    end: (signal) => signalTree(child, signal),
  };
}
