/** @module-tag full */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { KinoraError } from '../contract';
import { type LanguageModel, optimizePrompt } from '../prompts';
import { requestFor, tinyOptions } from './testing/tiny';
import { type OpenLanguageModel, openLanguageModel } from './wllama-model';

const goldens = '/lib/language-model/goldens';
const names = ['tiny-qwen3-Q8_0.gguf', 'tiny-llama-Q8_0.gguf'] as const;
const [tinyQwen] = names;

/** Web Lock that every worker of llama.cpp holds while it lives. */
const aliveLock = 'test:language-model-worker';
/** Where a worker of llama.cpp says that it asked for a GPU. */
const gpuChannel = new BroadcastChannel('test:language-model-gpu');
let gpuRequests = 0;
gpuChannel.onmessage = () => {
  gpuRequests += 1;
};

const RealWorker = self.Worker;

/** A worker whose first lines make its life and its use of the GPU visible. */
class WatchedWorker extends RealWorker {
  constructor(url: string | URL, options?: WorkerOptions) {
    super(watched(String(url)), options);
  }
}

function watched(url: string): string {
  if (!url.startsWith('blob:')) return url;
  const request = new XMLHttpRequest();
  request.open('GET', url, false);
  request.send();
  const prefix = `
    navigator.locks.request(${JSON.stringify(aliveLock)}, { mode: 'shared' }, () => new Promise(() => {}));
    const gpuAsked = new BroadcastChannel(${JSON.stringify(gpuChannel.name)});
    const requestAdapter = GPU.prototype.requestAdapter;
    GPU.prototype.requestAdapter = function (...args) {
      gpuAsked.postMessage('asked');
      return requestAdapter.apply(this, args);
    };`;
  return URL.createObjectURL(new Blob([prefix, request.responseText], { type: 'text/javascript' }));
}

async function workersAlive(): Promise<number> {
  const { held = [] } = await navigator.locks.query();
  return held.filter(({ name }) => name === aliveLock).length;
}

async function opfsFile(name: string): Promise<File> {
  const root = await navigator.storage.getDirectory();
  return (await root.getFileHandle(name)).getFile();
}

let model: OpenLanguageModel | undefined;

beforeAll(async () => {
  const root = await navigator.storage.getDirectory();
  for (const name of names) {
    const bytes = await (await fetch(`${goldens}/${name}`)).arrayBuffer();
    const stream = await (await root.getFileHandle(name, { create: true })).createWritable();
    await stream.write(bytes);
    await stream.close();
  }
});
beforeEach(() => {
  self.Worker = WatchedWorker;
  gpuRequests = 0;
});
afterEach(async () => {
  await model?.close();
  model = undefined;
  self.Worker = RealWorker;
  await expect.poll(workersAlive).toBe(0);
  expect(gpuRequests).toBe(0);
});
afterAll(() => gpuChannel.close());

async function failureOf(work: Promise<unknown>): Promise<KinoraError> {
  return work.then(
    () => Promise.reject(new Error('It did not fail.')),
    (error) => error,
  );
}

test.each(names)(
  '%s: a seed gives its text again, in threads too; another gives another',
  async (name) => {
    model = await openLanguageModel(await opfsFile(name), tinyOptions({ threads: 1 }));
    expect(await workersAlive()).toBe(1);
    const texts: string[] = [];
    const first = await model.generate(requestFor({ onText: (soFar) => texts.push(soFar) }));
    expect(first).not.toBe('');
    expect(texts.length).toBeGreaterThan(10);
    for (const [index, text] of texts.entries())
      expect(text.startsWith(texts[index - 1] ?? '')).toBe(true);
    expect(texts.at(-1)).toBe(first);
    expect(await model.generate(requestFor({ seed: 2 ** 32 + 7 }))).toBe(first);
    expect(await model.generate(requestFor({ seed: 8 }))).not.toBe(first);
    const last = await model.generate(requestFor({ seed: 2 ** 32 - 1 }));
    expect(await model.generate(requestFor({ seed: 2 ** 32 - 1 }))).toBe(last);
    await model.close();
    model = await openLanguageModel(await opfsFile(name), tinyOptions({ threads: 2 }));
    expect(await model.generate(requestFor())).toBe(first);
  },
);

test('the answer follows the grammar; a wrong one is an error and the next request is answered', async () => {
  model = await openLanguageModel(await opfsFile(tinyQwen), tinyOptions());
  const grammar = 'root ::= "[trigger_word] " word (" " word){2,5} "."\nword ::= [a-z]{2,8}';
  const form = /^\[trigger_word\] [a-z]{2,8}( [a-z]{2,8}){2,5}\.$/;
  for (const seed of [1, 2, 3]) {
    expect(await model.generate(requestFor({ seed, grammar }))).toMatch(form);
  }
  await expect(model.generate(requestFor({ grammar: 'root ::= (' }))).rejects.toThrow();
  const tooLong = requestFor({ user: 'a cat walks on a boat '.repeat(300) });
  await expect(model.generate(tooLong)).rejects.toThrow();
  expect(await model.generate(requestFor({ grammar }))).toMatch(form);
});

test.each([
  [
    'A paper boat drifts to the left over [sks] a quiet pond',
    /^[A-ZÀ-Þ][a-zA-Z0-9 ,;'À-ɏ%°.!?-]+$/,
  ],
  ['一只狗在海边奔跑，没有文字', /^[一-鿿，、；：0-9A-Za-z 。！？]+$/],
])('the prompt optimiser asks it for sentences: %s', async (prompt, form) => {
  const opened = await openLanguageModel(await opfsFile(tinyQwen), tinyOptions());
  model = opened;
  const answers: string[] = [];
  const listening: LanguageModel = {
    ...tinyOptions(),
    async generate(request) {
      answers.push(await opened.generate(request));
      return answers.at(-1) ?? '';
    },
  };
  const { signal } = tinyOptions();
  const options = { model: listening, seed: 7, countTokens: () => 1, signal, timeLimitMs: 60_000 };
  const record = await optimizePrompt(prompt, options);
  expect(answers).not.toEqual([]);
  // llama.cpp follows the grammar; what the tiny model says in it is nonsense.
  for (const answer of answers) expect(answer).toMatch(form);
  expect(record).toMatchObject({ status: 'failed', text: prompt, model: 'tiny', seed: 8 });
  expect(record.reasons.join()).not.toContain('form');
});

test('an abort ends an answer within a token; the next request is answered', async () => {
  model = await openLanguageModel(await opfsFile(tinyQwen), tinyOptions());
  const whole = await model.generate(requestFor());
  const control = new AbortController();
  let calls = 0;
  const onText = () => {
    calls += 1;
    if (calls === 5) control.abort();
  };
  const cut = model.generate(requestFor({ maxTokens: 900, signal: control.signal, onText }));
  await expect(cut).rejects.toMatchObject({ name: 'AbortError' });
  expect(await model.generate(requestFor())).toBe(whole);
  expect(calls).toBe(5);
});

test('closing ends an answer', async () => {
  model = await openLanguageModel(await opfsFile(tinyQwen), tinyOptions());
  const opened = model;
  const onText = () => void opened.close();
  const failure = await failureOf(opened.generate(requestFor({ maxTokens: 900, onText })));
  expect(failure.code).toBe('CANCELLED');
});

test.each([
  ['isolated', ''],
  ['not isolated', "cross-origin-isolated 'none'"],
])('inside a worker of a page that is %s', async (how, allow) => {
  const frame = document.createElement('iframe');
  frame.allow = allow;
  document.body.append(frame);
  try {
    const url = new URL('./testing/worker.ts?worker_file&type=module', import.meta.url);
    const answer = await new Promise<{ text: string; isolated: boolean }>((resolve, reject) => {
      const { Worker: FrameWorker } = frame.contentWindow as typeof globalThis & Window;
      const worker = new FrameWorker(url, { type: 'module' });
      worker.onmessage = ({ data }) => ('code' in data ? reject(data) : resolve(data));
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(tinyQwen);
    });
    expect(answer.isolated).toBe(how === 'isolated');
    model = await openLanguageModel(await opfsFile(tinyQwen), tinyOptions());
    expect(answer.text).toBe(await model.generate(requestFor()));
  } finally {
    frame.remove();
  }
});

describe('a model that does not open leaves no worker', () => {
  test('aborted at any time', async () => {
    const file = await opfsFile(tinyQwen);
    for (const delay of [0, 5, 20, 60]) {
      const control = new AbortController();
      setTimeout(() => control.abort(), delay);
      const failure = await failureOf(
        openLanguageModel(file, tinyOptions({ signal: control.signal })),
      );
      expect(failure.code).toBe('CANCELLED');
    }
    await expect.poll(workersAlive).toBe(0);
  });

  test('its time is over', async () => {
    const failure = await failureOf(
      openLanguageModel(await opfsFile(tinyQwen), tinyOptions({ loadLimitMs: 15 })),
    );
    expect(failure).toMatchObject({ code: 'LANGUAGE_MODEL_FAILED' });
    expect(failure.message).toContain('was not loaded within');
  });

  test.each([
    ['no GGUF', () => new File(['no model at all, whatever its name says'], 'model.gguf')],
    ['empty', () => new File([], 'model.gguf')],
    ['cut short', (whole: File) => new File([whole.slice(0, 60_000)], 'model.gguf')],
    ['cut in its header', (whole: File) => new File([whole.slice(0, 2_000)], 'model.gguf')],
  ])('%s', async (_, make) => {
    const file = make(await opfsFile(tinyQwen));
    const failure = await failureOf(openLanguageModel(file, tinyOptions()));
    expect(failure).toMatchObject({ code: 'MODEL_FILE_INVALID' });
  });

  test('the program is not there', async () => {
    const assets = new URL('/nowhere/', location.origin);
    const failure = await failureOf(
      openLanguageModel(await opfsFile(tinyQwen), tinyOptions({ assets })),
    );
    expect(failure).toMatchObject({ code: 'LANGUAGE_MODEL_FAILED' });
  });
});
