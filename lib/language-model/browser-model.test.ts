import { expect, test, vi } from 'vitest';
import {
  type BrowserModelState,
  browserModelState,
  openBrowserModel,
  type PromptApi,
} from './browser-model';

/*
 * The browser's own model is not in any test browser: these tests run against an interface that behaves
 * as its specification says.
 */

interface Script {
  readonly state?: BrowserModelState;
  /** Pieces of the answer; a function is called when its turn comes. */
  readonly pieces?: readonly (string | (() => void))[];
  readonly failure?: DOMException;
}

function scripted({ state = 'available', pieces = ['A cat ', 'walks.'], failure }: Script = {}) {
  const sessions: { system: string; alive: boolean }[] = [];
  const asked: unknown[] = [];
  const api: PromptApi = {
    availability: async (options) => {
      asked.push(options);
      return state;
    },
    create: async ({ initialPrompts, monitor, signal }) => {
      if (failure) throw failure;
      signal.throwIfAborted();
      const target = new EventTarget();
      monitor?.(target);
      target.dispatchEvent(Object.assign(new Event('downloadprogress'), { loaded: 0.5 }));
      const session = { system: initialPrompts[0]?.content ?? '', alive: true };
      sessions.push(session);
      return {
        promptStreaming(_, options) {
          const left = [...pieces];
          return new ReadableStream<string>({
            start: (controller) =>
              options.signal.addEventListener('abort', () => {
                if (session.alive && left.length > 0) controller.error(options.signal.reason);
              }),
            pull(controller) {
              const next = left.shift();
              if (next === undefined) controller.close();
              else if (typeof next === 'function') {
                next();
                if (!options.signal.aborted) controller.enqueue('');
              } else controller.enqueue(next);
            },
          });
        },
        destroy: () => {
          session.alive = false;
        },
      };
    },
  };
  return { api, sessions, asked };
}

function request(signal = new AbortController().signal) {
  return {
    system: 'Rewrite.',
    user: 'a cat',
    grammar: 'root ::= "x"',
    seed: 1,
    maxTokens: 160,
    signal,
  };
}
const { signal } = new AbortController();

test('the answer is streamed; its session is destroyed; the seed says that it cannot be made again', async () => {
  const { api, sessions, asked } = scripted();
  const onDownload = vi.fn();
  const model = await openBrowserModel({ language: 'de', signal, api, onDownload });
  expect(model).toMatchObject({ sha256: null, repeatable: false });
  expect(asked[0]).toMatchObject({
    expectedInputs: [{ type: 'text', languages: ['en', 'de'] }],
    expectedOutputs: [{ type: 'text', languages: ['de'] }],
  });
  const texts: string[] = [];
  const text = await model.generate({ ...request(), onText: (soFar) => texts.push(soFar) });
  expect(text).toBe('A cat walks.');
  expect(texts.at(-1)).toBe('A cat walks.');
  expect(sessions.map(({ system }) => system)).toEqual(['', 'Rewrite.']);
  expect(sessions.every(({ alive }) => !alive)).toBe(true);
  expect(onDownload).toHaveBeenCalledWith(0.5);
});

test('an answer without an end is cut at the limit of tokens', async () => {
  const { api, sessions } = scripted({ pieces: ['x'.repeat(600), 'y'.repeat(600), 'z'] });
  const model = await openBrowserModel({ language: 'en', signal, api });
  expect(await model.generate(request())).toMatch(/^x{600}y{600}$/);
  expect(sessions.every(({ alive }) => !alive)).toBe(true);
});

test('an abort and closing end an answer', async () => {
  for (const how of ['abort', 'close'] as const) {
    const control = new AbortController();
    let end = () => {};
    const { api, sessions } = scripted({ pieces: ['A cat ', () => end(), 'walks.'] });
    const model = await openBrowserModel({ language: 'en', signal, api });
    end = () => (how === 'abort' ? control.abort() : void model.close());
    const texts: string[] = [];
    const asked = {
      ...request(control.signal),
      onText: (text: string) => texts.push(text),
    };
    await expect(model.generate(asked)).rejects.toThrow();
    expect(texts.at(-1)).toBe('A cat ');
    expect(sessions.every(({ alive }) => !alive)).toBe(true);
  }
});

test('no model, or one that the browser does not open', async () => {
  expect(await browserModelState('en', undefined)).toBe('unavailable');
  const rejecting = { ...scripted().api, availability: () => Promise.reject(new TypeError('de')) };
  expect(await browserModelState('de', rejecting)).toBe('unavailable');
  for (const api of [undefined, scripted({ state: 'unavailable' }).api]) {
    const opening = openBrowserModel({ language: 'en', signal, api });
    await expect(opening).rejects.toMatchObject({ code: 'LANGUAGE_MODEL_FAILED' });
  }
  const failure = new DOMException('Requires a click.', 'NotAllowedError');
  const { api } = scripted({ state: 'downloadable', failure });
  const opening = openBrowserModel({ language: 'en', signal, api });
  await expect(opening).rejects.toMatchObject({ code: 'LANGUAGE_MODEL_FAILED', cause: failure });
  const cancelled = openBrowserModel({
    language: 'en',
    signal: AbortSignal.abort(),
    api: scripted().api,
  });
  await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' });
});
