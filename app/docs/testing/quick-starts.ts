import { spawnSync } from 'node:child_process';
import { snippetNames } from '../snippet';

/** A quick start of the documentation with the program that runs it. */
export interface QuickStart {
  readonly name: string;
  readonly command: string;
}

/** For tests: the quick starts whose programs are installed. Those for Node always are. */
export function quickStarts(): readonly QuickStart[] {
  return snippetNames.flatMap((name) => {
    if (!name.startsWith('quick')) return [];
    if (name.endsWith('.sh')) return have('curl', 'jq') ? [{ name, command: 'sh' }] : [];
    if (name.endsWith('.py')) return have('python3') ? [{ name, command: 'python3' }] : [];
    return [{ name, command: process.execPath }];
  });
}

function have(...programs: readonly string[]): boolean {
  return programs.every((program) => spawnSync(program, ['--version']).status === 0);
}
