import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../contract/testing/folder';
import { root } from './paths';
import { outputOf } from './process';

const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

/** A command that hears of signals late, as one does that computes or asks its database. */
const busy = `
process.on('SIGTERM', () => {
  process.stdout.write('cleared away');
  process.exit(0);
});
process.stdout.write('ready ');
const work = () => {
  const end = Date.now() + 300;
  while (Date.now() < end);
  setImmediate(work);
};
work();
`;

const folder = temporaryFolder();

it('every command of ours starts in the way that lets it end well while it is busy', async () => {
  const starts = Object.values(scripts)
    .flatMap((script) => script.split('&&'))
    .filter((command) => command.includes('.ts'))
    .map((command) =>
      command
        .replace('--import ./lib/cli/prepare.ts', '')
        .replace(/\S+\.ts\b.*/, '')
        .trim(),
    );
  expect(new Set(starts)).toEqual(new Set(['node --import tsx/esm']));

  const file = path.join(folder(), 'busy.ts');
  await writeFile(file, busy);
  const [, ...options] = starts[0]?.split(' ') ?? [];
  const child = spawn(process.execPath, [...options, file], { cwd: root });
  const said = outputOf(child.stdout);
  await once(child.stdout, 'data');
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  expect({ code, said: said() }).toEqual({ code: 0, said: 'ready cleared away' });
});
