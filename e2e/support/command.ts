import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { finished } from 'node:stream/promises';
import { root } from '../../lib/cli/paths';
import { exitCode, outputOf, signalTree, startChild } from '../../lib/cli/process';
import { termsVersion } from '../../lib/contract';

/** A running command without a terminal. */
export interface RunningCommand {
  /** Where it was started. */
  readonly folder: string;
  /** Its output so far. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly code: Promise<number>;
  readonly pid: number;
  /** Ends it as Ctrl-C does, or as a service manager would. */
  end(signal: 'SIGINT' | 'SIGTERM'): void;
}

/**
 * Starts a command of `lib/cli` as npm does, with WebGPU on the CPU.
 *
 * @param folder the working directory; created where it is missing
 */
export async function startCommand(
  command: 'generate' | 'models' | 'worker',
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningCommand> {
  await mkdir(folder, { recursive: true });
  const script = path.join(root, 'lib', 'cli', `${command}.ts`);
  // As the scripts of package.json do. The `tsx` program kills a command that does not handle a signal
  // within 60 ms, so that it could not clean up.
  const child = startChild(['--import', 'tsx/esm', script, ...args], {
    cwd: folder,
    // npm passes the user's working directory in INIT_CWD.
    env: {
      KINORA_GPU: 'software',
      INIT_CWD: folder,
      KINORA_ACCEPT_TERMS: termsVersion,
      ...env,
    },
  });
  // At `exit` a part of the output may not have arrived.
  const ended = exitCode(child).then(async (code) => {
    await Promise.all([child.stdout, child.stderr].map((stream) => stream && finished(stream)));
    return code;
  });
  return {
    folder,
    stdout: outputOf(child.stdout),
    stderr: outputOf(child.stderr),
    code: ended,
    pid: child.pid ?? 0,
    end: (signal) => signalTree(child, signal),
  };
}
