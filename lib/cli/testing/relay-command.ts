import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { OptionTypes } from '../arguments';
import { root } from '../paths';
import { type RelayCommand, runRelayCommand } from '../relay-command';

/** Runs a line of `keys` or `webhooks` in this process, with a data folder and further settings. */
export async function runLine<Options extends OptionTypes>(
  command: RelayCommand<Options>,
  folder: string,
  line: string,
  more: Readonly<Record<string, string>> = {},
) {
  let out = '';
  let said = '';
  const code = await runRelayCommand(command, line.split(' ').filter(Boolean), {
    environment: { KINORA_DATA: folder, ...more },
    out: (part) => {
      out += part;
    },
    say: (part) => {
      said += part;
    },
  });
  return { code, out, said };
}

/** Runs `keys` or `webhooks` as a program that must refuse its arguments. */
export async function runProgram(...args: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'lib/cli/relay.ts', ...args], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, said };
}
