import { expect, test } from 'vitest';
import { modelHelp, parseModelOptions } from './model-options';

const synthetic = ['--synthetic', 'wan2.2-ti2v-5b'];

test('the command of the issue', () => {
  const args = [...synthetic, '--layers', '2', '--tokens', '128', '--json', 'out.json'];
  expect(parseModelOptions(args)).toEqual({
    model: 'wan2.2-ti2v-5b',
    backend: 'wasm',
    precision: undefined,
    json: 'out.json',
    stages: {
      layers: 2,
      tokens: 128,
      textTokens: 128,
      level: 0,
      passes: 3,
      maxChunkTokens: 4096,
      kernels: 'runtime',
    },
  });
});

test('without sizes a GPU gets the whole clip, and the CPU a small one', () => {
  const tokensOf = (...more: string[]) => {
    const options = parseModelOptions([...synthetic, ...more]);
    return options === 'help' ? null : options.stages.tokens;
  };
  expect(tokensOf('--backend', 'webgpu')).toBe(27_280);
  expect(tokensOf()).toBe(128);
});

test('a prompt is not longer than the clip, nor than prompts may be', () => {
  const textTokensOf = (...more: string[]) => {
    const options = parseModelOptions([...synthetic, ...more]);
    return options === 'help' ? null : options.stages.textTokens;
  };
  expect(textTokensOf('--tokens', '27280')).toBe(512);
  expect(textTokensOf('--tokens', '64')).toBe(64);
  expect(textTokensOf('--tokens', '64', '--text-tokens', '512')).toBe(512);
});

test('every option is in the help', () => {
  expect(parseModelOptions(['--help'])).toBe('help');
  for (const option of ['layers', 'tokens', 'text-tokens', 'latent', 'precision', 'json']) {
    expect(modelHelp).toContain(`--${option}`);
  }
});

test.each([
  [[], '--synthetic must name a model'],
  [[...synthetic, '--layers', '0'], '--layers must be a whole number of at least 1, not "0"'],
  [[...synthetic, '--tokens', '129'], '--tokens must be even'],
  [[...synthetic, '--latent', '8'], '--latent must be a whole number'],
  [[...synthetic, '--text-tokens', '513'], '--text-tokens must be at most 512'],
  [[...synthetic, '--kernels', 'exact'], '--kernels exact needs --backend webgpu'],
  [[...synthetic, '--backend', 'cuda'], '--backend must be wasm or webgpu'],
  [[...synthetic, '--precision', 'f8'], '--precision must be one of f32, int8, int4'],
  [[...synthetic, '--wat'], "Unknown option '--wat'"],
])('%j is refused', (args, sentence) => {
  expect(() => parseModelOptions(args)).toThrow(sentence);
});
