import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { exitCode, outputOf, startChild } from '../process';

const folder = temporaryFolder();

async function run(...options: string[]) {
  const preload = ['--import', 'tsx/esm', '--import', './lib/cli/dev/prepare.ts'];
  const child = startChild([...preload, 'lib/cli/dev/gpu-report.ts', ...options]);
  const [said, warned] = [outputOf(child.stdout), outputOf(child.stderr)];
  const code = await exitCode(child);
  return { code, said: said(), warned: warned() };
}

test('one measurement on the CPU gives the same figures in the file and as JSON', {
  tags: ['full'],
  timeout: 300_000,
}, async () => {
  const only = ['--backend', 'wasm', '--only', 'attention', '--rounds', '1'];
  const { code, said, warned } = await run(...only, '--json', '--out', folder());
  expect(code, warned).toBe(0);
  const report = JSON.parse(said);
  const [line, ...others] = report.lines;
  expect(others).toEqual([]);
  expect(line).toMatchObject({ measurement: 'attention', mode: 'runtime', reason: null });
  expect(line.rate).toBeGreaterThan(0);
  expect(report.device).toBeNull();
  const read = (name: string) => readFile(path.join(folder(), name), 'utf8');
  expect(JSON.parse(await read('gpu-report.json'))).toEqual(report);
  const text = await read('gpu-report.md');
  expect(text).toMatch(/^# Kinora on a CPU\n\nCPU, by ONNX Runtime/);
  expect(text).toContain('**Self-attention: 2 × 128 channels');
});

test('what it does not know is refused', { tags: ['full'], timeout: 60_000 }, async () => {
  const cases = [
    [['--only', 'everything'], '--only must be one of self-test, peak, tuner'],
    [['--tokens', '63'], '--tokens must be even.'],
    [['--rounds', '0'], '--rounds must be a whole number of at least 1.'],
    [['--backend', 'cuda'], '--backend must be one of webgpu, wasm.'],
  ] as const;
  const answers = await Promise.all(cases.map(([options]) => run(...options)));
  for (const [i, [, sentence]] of cases.entries()) {
    expect(answers[i]).toMatchObject({ code: 1, warned: expect.stringContaining(sentence) });
  }
});
