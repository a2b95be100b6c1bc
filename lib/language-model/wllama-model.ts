import type {
  ChatCompletionChunk,
  ChatCompletionParams,
  Wllama,
} from '@wllama/wllama/esm/index.js';
import { KinoraError, untilAborted } from '../contract';
import type { LanguageModel } from '../prompts';

/** A prompt for a language model. */
export type TextRequest = Parameters<LanguageModel['generate']>[0];

/** A language model whose memory is held until it is closed. */
export interface OpenLanguageModel extends LanguageModel {
  close(): Promise<void>;
}

/** How a language model is opened. */
export interface OpenOptions {
  readonly name: string;
  readonly sha256: string;
  /** Folder with `wllama.wasm`, with a trailing slash: `/wllama/` of this origin. */
  readonly assets: URL;
  readonly signal: AbortSignal;
  /** By default half of the processor's cores, at most 8; one where the page is not isolated. */
  readonly threads?: number;
  /** Milliseconds in which the model must be loaded. */
  readonly loadLimitMs?: number;
}

/** Tokens of prompt and answer together. */
const contextTokens = 1024;
const defaultLoadLimitMs = 30_000;

/** The values that Qwen3's card gives for answers without thinking; llama-server's names (README). */
const sampling = { temperature: 0.7, top_p: 0.8, top_k: 20, min_p: 0, presence_penalty: 1 };

/** llama.cpp takes this seed as "any". */
const randomSeed = 2 ** 32 - 1;

/**
 * Loads a GGUF chat model with llama.cpp, on the CPU, in a worker that is started for it.
 *
 * @param file read on demand, and to be left in place until the model is closed; at most 2 GB
 * @throws KinoraError `MODEL_FILE_INVALID` where llama.cpp cannot load the file, `LANGUAGE_MODEL_FAILED`
 *   where the browser lacks what it needs, its program cannot be fetched or the time is over, `CANCELLED`;
 *   then its worker has ended
 */
export async function openLanguageModel(
  file: File,
  options: OpenOptions,
): Promise<OpenLanguageModel> {
  const { name, sha256, assets, signal, loadLimitMs = defaultLoadLimitMs } = options;
  requireSupport();
  const limit = AbortSignal.timeout(loadLimitMs);
  const ended = AbortSignal.any([signal, limit]);
  let program = '';
  let wllama: Wllama | undefined;
  let loading: Promise<void> | undefined;
  try {
    // Fetched here: llama.cpp's worker never answers when it cannot fetch its program.
    program = await fetchProgram(assets, ended);
    const { Wllama, LogLevel } = await importWllama();
    ended.throwIfAborted();
    wllama = new Wllama({ default: program }, { suppressNativeLog: true, logger: silent });
    // The default is another program from a CDN.
    wllama.setCompat(null);
    loading = wllama.loadModel([file], {
      n_gpu_layers: 0,
      n_ctx: contextTokens,
      n_parallel: 1,
      n_threads: options.threads ?? Math.max(1, Math.min(8, navigator.hardwareConcurrency >> 1)),
      log_level: LogLevel.ERROR,
      warmup: false,
    });
    await untilAborted(loading, ended);
    // For a file that it cannot load, llama.cpp reports a model without a vocabulary.
    if (wllama.getModelMetadata().hparams.nVocab === 0) throw new Error('There is no vocabulary.');
    return new WllamaModel(wllama, { name, sha256 });
  } catch (cause) {
    const exit = () => wllama?.exit();
    await exit();
    // Aborted before there was a worker, llama.cpp would start one all the same.
    loading?.then(exit, exit);
    if (signal.aborted) throw new KinoraError('CANCELLED', undefined, { cause });
    if (cause instanceof KinoraError) throw cause;
    if (limit.aborted) {
      const seconds = Math.round(loadLimitMs / 1000);
      const sentence = `The language model ${name} was not loaded within ${seconds} seconds.`;
      throw new KinoraError('LANGUAGE_MODEL_FAILED', sentence, { cause });
    }
    const sentence = `${name} is damaged, or is not a language model that llama.cpp can load.`;
    const remedy = 'Download the language model again, or choose a GGUF file of a chat model.';
    throw new KinoraError('MODEL_FILE_INVALID', sentence, { cause, remedy });
  } finally {
    URL.revokeObjectURL(program);
  }
}

/** A model that is loaded. Requests run one after another. */
class WllamaModel implements OpenLanguageModel {
  readonly name: string;
  readonly sha256: string;
  readonly #wllama: Wllama;
  /** Ends with the last request, also with one that was aborted and that llama.cpp still computes. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #closed = new AbortController();

  constructor(wllama: Wllama, options: Pick<OpenOptions, 'name' | 'sha256'>) {
    this.#wllama = wllama;
    this.name = options.name;
    this.sha256 = options.sha256;
  }

  async generate(request: TextRequest): Promise<string> {
    const signal = AbortSignal.any([request.signal, this.#closed.signal]);
    const answer = this.#last.then(() => this.#answer(request, signal));
    // The next request waits for its end, whatever that is.
    this.#last = answer.catch(() => undefined);
    return untilAborted(answer, signal);
  }

  async close(): Promise<void> {
    this.#closed.abort(new KinoraError('CANCELLED', 'The language model was closed.'));
    // Ends the worker and thereby its threads; their memory goes with them.
    await this.#wllama.exit();
  }

  async #answer(request: TextRequest, signal: AbortSignal): Promise<string> {
    const { system, user, grammar, maxTokens, onText } = request;
    signal.throwIfAborted();
    let text = '';
    let finished = false;
    const parameters: ChatCompletionParams & typeof sampling = {
      messages: [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ],
      chat_template_kwargs: { enable_thinking: false },
      max_tokens: maxTokens,
      seed: seedOf(request.seed),
      cache_prompt: true,
      ...sampling,
      ...(grammar === undefined ? {} : { grammar }),
    };
    const completion = this.#wllama.createChatCompletion({
      ...parameters,
      abortSignal: signal,
      stream: true,
      onData: (chunk: ChatCompletionChunk) => {
        if (signal.aborted) return;
        const [choice] = chunk.choices;
        if (choice?.delta.content) {
          text += choice.delta.content;
          onText?.(text);
        }
        if (choice?.finish_reason) finished = true;
      },
    });
    await completion.catch((cause: unknown) => {
      signal.throwIfAborted();
      const reason = cause instanceof Error ? cause.message : String(cause);
      const sentence = `The language model ended without an answer: ${reason}`;
      throw new KinoraError('LANGUAGE_MODEL_FAILED', sentence, { cause });
    });
    signal.throwIfAborted();
    if (!finished) throw new KinoraError('LANGUAGE_MODEL_FAILED', 'The answer has no end.');
    return text;
  }
}

/** llama.cpp has seeds of 32 bits. */
function seedOf(seed: number): number {
  const short = seed % 2 ** 32;
  return short === randomSeed ? 0 : short;
}

/** @throws KinoraError `LANGUAGE_MODEL_FAILED` where llama.cpp's program cannot run */
function requireSupport(): void {
  if ('Suspending' in WebAssembly && hasMemory64()) return;
  throw new KinoraError(
    'LANGUAGE_MODEL_FAILED',
    'This browser lacks JavaScript Promise Integration or 64-bit memory for WebAssembly.',
    { remedy: 'Use the prompt as it is, or a current Chrome or Edge.' },
  );
}

function hasMemory64(): boolean {
  try {
    // `address` is not in the type library yet; without it the bigint throws.
    const descriptor: unknown = { address: 'i64', initial: 1n };
    new WebAssembly.Memory(descriptor as WebAssembly.MemoryDescriptor);
    return true;
  } catch {
    // The browser knows no 64-bit memory.
    return false;
  }
}

/** The program as a blob URL, so that every way it can be missing is known at once. */
async function fetchProgram(assets: URL, signal: AbortSignal): Promise<string> {
  const url = new URL('wllama.wasm', assets);
  try {
    const response = await fetch(url, { signal });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const bytes = await response.arrayBuffer();
    if (!WebAssembly.validate(bytes.slice(0, 8))) throw new Error('It is not WebAssembly.');
    return URL.createObjectURL(new Blob([bytes], { type: 'application/wasm' }));
  } catch (cause) {
    signal.throwIfAborted();
    throw notFetched(url.pathname, cause);
  }
}

function importWllama(): Promise<typeof import('@wllama/wllama/esm/index.js')> {
  return import('@wllama/wllama/esm/index.js').catch((cause: unknown) => {
    throw notFetched('The library for language models', cause);
  });
}

function notFetched(what: string, cause: unknown): KinoraError {
  const sentence = `${what} could not be fetched.`;
  const remedy = 'Check the connection to the page and try again.';
  return new KinoraError('LANGUAGE_MODEL_FAILED', sentence, { cause, remedy });
}

const silent = { debug() {}, log() {}, warn() {}, error() {} };
