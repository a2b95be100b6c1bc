/** @module-tag full */
import * as Comlink from 'comlink';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { installTransferHandlers, type OptimizerApi, type OptimizerRequest } from '../contract';
import { failureOf } from '../contract/testing/failure';
import { fetchBlob } from './testing/runs';

installTransferHandlers();

const installed = 'installed.gguf';
let worker: Worker;
let optimizer: Comlink.Remote<OptimizerApi>;

beforeAll(() => {
  worker = new Worker(new URL('./testing/asking-optimizer.ts', import.meta.url), {
    type: 'module',
  });
  optimizer = Comlink.wrap<OptimizerApi>(worker);
});
afterAll(() => worker.terminate());
afterEach(async () => {
  const root = await navigator.storage.getDirectory();
  await root.removeEntry(installed).catch(() => undefined);
});

async function install(bytes: Blob | string): Promise<void> {
  const root = await navigator.storage.getDirectory();
  const stream = await (await root.getFileHandle(installed, { create: true })).createWritable();
  await stream.write(bytes);
  await stream.close();
}

const tiny = () => fetchBlob('/lib/language-model/goldens/tiny-qwen3-Q8_0.gguf');

function request(more: Partial<OptimizerRequest> = {}): OptimizerRequest {
  return { prompt: 'a cat walks', model: 'tiny', seed: 7, ...more };
}

test('a prompt is improved as it is shown; tokens come from the video’s model', async () => {
  await install(await tiny());
  const texts: string[] = [];
  const record = await optimizer.optimize(
    request(),
    Comlink.proxy((soFar: string) => void texts.push(soFar)),
  );
  expect(record).toMatchObject({ status: 'used', original: 'a cat walks', model: 'tiny', seed: 7 });
  expect(record.text).not.toBe('');
  expect(texts.at(-1)).toBe(record.text);
  expect(record.milliseconds).toBeGreaterThan(0);
  const { tokens } = await optimizer.measurePrompt('tiny', 'a cat walks');
  expect(record.reasons).toEqual([`${tokens} tokens`]);
  // The real model is not installed here: the bundled tokenizer counts for it.
  expect(await optimizer.measurePrompt('wan2.2-ti2v-5b', 'a '.repeat(600))).toMatchObject({
    tokens: 601,
    limit: 512,
    kept: 1022,
  });
});

test('without a language model the prompt stays, and the record says so', async () => {
  const real = new Worker(new URL('../../workers/optimizer.ts', import.meta.url), {
    type: 'module',
  });
  try {
    const record = await Comlink.wrap<OptimizerApi>(real).optimize(request());
    expect(record).toMatchObject({ status: 'unavailable', text: 'a cat walks', model: null });
  } finally {
    real.terminate();
  }
});

test('a damaged language model is an error with its remedy', async () => {
  await install('damaged');
  const failure = await failureOf(optimizer.optimize(request()));
  expect(failure).toMatchObject({ code: 'MODEL_FILE_INVALID' });
  expect(failure.remedy).toContain('again');
});
