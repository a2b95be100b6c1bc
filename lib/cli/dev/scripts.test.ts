import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { root } from '../paths';
import { outputOf } from '../process';

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
        .replace('--import ./lib/cli/dev/prepare.ts', '')
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

it('plan lists the models that there are, soak has a help, and an unknown option is refused alike', {
  tags: ['full'],
}, async () => {
  const run = async (program: string, argument: string) => {
    const options = ['--import', 'tsx/esm', program, argument];
    const child = spawn(process.execPath, options, { cwd: root });
    const [out, said] = [outputOf(child.stdout), outputOf(child.stderr)];
    const [code] = await once(child, 'close');
    return { code, out: out(), said: said() };
  };
  const [plan, soak, ...typos] = await Promise.all([
    run('lib/cli/plan.ts', 'nope'),
    run('lib/cli/dev/soak.ts', '--help'),
    run('lib/cli/plan.ts', '--hlep'),
    ...['soak', 'parity', 'export', 'gpu-report'].map((name) =>
      run(`lib/cli/dev/${name}.ts`, '--hlep'),
    ),
  ]);
  expect(plan.code).toBe(1);
  expect(plan.said).toMatch(/^MODEL_UNKNOWN: .*\nUse one of: mini, wan2\.2-ti2v-5b, .*-720p\.\n$/);
  expect(soak).toMatchObject({ code: 0, out: expect.stringContaining('npm run soak') });
  for (const typo of typos) {
    expect(typo.code).toBe(1);
    expect(typo.said).toMatch(/^REQUEST_INVALID: .*--hlep.*\nRun `npm run [\w-]+ -- --help`/);
  }
});
