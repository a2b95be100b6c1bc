import { KinoraError } from '../contract/errors';
import type { OpenLanguageModel, TextRequest } from './language-model';

/** `downloadable`: the browser would first fetch gigabytes; `downloading`: it is doing so. */
export type BrowserModelState = 'unavailable' | 'downloadable' | 'downloading' | 'available';

/** The part of the browser's `LanguageModel` that is used here (README, "The browser's own model"). */
export interface PromptApi {
  availability(options: SessionOptions): Promise<BrowserModelState>;
  create(
    options: SessionOptions & {
      readonly initialPrompts: readonly { readonly role: 'system'; readonly content: string }[];
      readonly signal: AbortSignal;
      readonly monitor?: (monitor: EventTarget) => void;
    },
  ): Promise<PromptSession>;
}

interface SessionOptions {
  readonly expectedInputs: readonly ExpectedText[];
  readonly expectedOutputs: readonly ExpectedText[];
}

interface ExpectedText {
  readonly type: 'text';
  readonly languages: readonly string[];
}

interface PromptSession {
  promptStreaming(input: string, options: { readonly signal: AbortSignal }): ReadableStream<string>;
  destroy(): void;
}

/** Shown to the user, and kept in the record of an optimisation. */
export const browserModelName = 'The browser’s own model';

/** About this many characters are a token; the interface has no limit of tokens. */
const charactersPerToken = 6;

/**
 * Whether this browser has a language model of its own. Only a window has the interface; a worker
 * gets `unavailable`.
 *
 * @param language of the prompt, such as `en`
 */
export async function browserModelState(
  language: string,
  api: PromptApi | undefined = promptApi(),
): Promise<BrowserModelState> {
  if (!api) return 'unavailable';
  // Some browsers reject what they cannot do.
  return api.availability(textIn(language)).catch(() => 'unavailable');
}

/**
 * Opens the browser's own model. It takes no seed and no grammar: the text cannot be made again, and
 * the checks of the prompt optimiser alone protect what must stay.
 *
 * Where the state is `downloadable`, the browser wants the user's click before this call and then
 * downloads its model.
 *
 * @param options `onDownload` sees the share that is there, 0 … 1
 * @throws KinoraError `LANGUAGE_MODEL_FAILED` where there is none or the browser refuses, `CANCELLED`
 */
export async function openBrowserModel(options: {
  readonly language: string;
  readonly signal: AbortSignal;
  readonly onDownload?: (share: number) => void;
  readonly api?: PromptApi | undefined;
}): Promise<OpenLanguageModel> {
  const { language, signal, onDownload, api = promptApi() } = options;
  if (!api || (await browserModelState(language, api)) === 'unavailable') {
    const sentence = 'This browser has no language model of its own for this language.';
    throw new KinoraError('LANGUAGE_MODEL_FAILED', sentence, {
      remedy: 'Download a language model on the Models page, or use the prompt as it is.',
    });
  }
  const create = (system: string, ended: AbortSignal) =>
    api.create({
      ...textIn(language),
      initialPrompts: [{ role: 'system', content: system }],
      signal: ended,
      monitor: (monitor) =>
        monitor.addEventListener('downloadprogress', (event) => {
          if ('loaded' in event && typeof event.loaded === 'number') onDownload?.(event.loaded);
        }),
    });
  try {
    // Asked for within the user's click; the sessions of the requests come after it.
    (await create('', signal)).destroy();
  } catch (cause) {
    if (signal.aborted) throw new KinoraError('CANCELLED', undefined, { cause });
    const sentence = 'The browser did not open its own language model.';
    throw new KinoraError('LANGUAGE_MODEL_FAILED', sentence, { cause });
  }
  const closed = new AbortController();
  return {
    name: browserModelName,
    sha256: null,
    repeatable: false,
    generate: (request) =>
      answer(create, { ...request, signal: AbortSignal.any([request.signal, closed.signal]) }),
    close: async () => closed.abort(new KinoraError('CANCELLED', 'The language model was closed.')),
  };
}

/** One session per request: a session remembers what was said in it. */
async function answer(
  create: (system: string, signal: AbortSignal) => Promise<PromptSession>,
  { system, user, maxTokens, signal, onText }: TextRequest,
): Promise<string> {
  const session = await create(system, signal);
  const enough = new AbortController();
  try {
    const ended = AbortSignal.any([signal, enough.signal]);
    const reader = session.promptStreaming(user, { signal: ended }).getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return text;
      text += value;
      onText?.(text);
      if (text.length > maxTokens * charactersPerToken) return text;
    }
  } finally {
    enough.abort();
    session.destroy();
  }
}

function promptApi(): PromptApi | undefined {
  return (globalThis as { LanguageModel?: PromptApi }).LanguageModel;
}

function textIn(language: string): SessionOptions {
  const text = [{ type: 'text', languages: [language] }] as const;
  // The instruction is English.
  const languages = [...new Set(['en', language])];
  return { expectedInputs: [{ type: 'text', languages }], expectedOutputs: text };
}
