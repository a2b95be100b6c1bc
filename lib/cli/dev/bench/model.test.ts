import { expect, test } from 'vitest';
import { exitCode, outputOf, startChild, stopTree } from '../../process';

test('the whole command ends on an emulated GPU with kernels of our own', {
  tags: ['full'],
  timeout: 1_200_000,
}, async () => {
  const size = '--layers 1 --tokens 2 --passes 1 --latent 1x1';
  const command = `model --synthetic mini --backend webgpu --kernels exact ${size}`;
  const preload = [
    '--import',
    'tsx/esm',
    '--import',
    './lib/cli/dev/prepare.ts',
    'lib/cli/dev/bench.ts',
  ];
  const child = startChild([...preload, ...command.split(' ')]);
  const [said, warned] = [outputOf(child.stdout), outputOf(child.stderr)];
  try {
    const code = await exitCode(child);
    expect(code, warned()).toBe(0);
  } finally {
    await stopTree(child);
  }
  const stages = ['transformer block', 'text-encoder-layer', 'VAE up block 0', 'safety checker'];
  for (const stage of stages) expect(said()).toMatch(new RegExp(`^${stage}.* [\\d.]+ ms`, 'm'));
  expect(said()).toMatch(/^peak +[\d.]+ GiB/m);
});
