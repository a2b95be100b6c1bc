import { KinoraError } from '../contract';
import { appUrl } from '../contract/site';
import { type AnswerSpeed, openLanguageModel } from './wllama-model';

export interface LanguageModelBenchOptions {
  /** Tokens of the answer. */
  readonly tokens: number;
  readonly threads?: number;
}

export interface LanguageModelResult {
  readonly megabytes: number;
  readonly loadSeconds: number;
  readonly speed: AnswerSpeed;
}

/** As long as the instruction of the prompt optimiser, in words that any vocabulary has. */
const instruction = 'the cat walks on the grass in the rain and the boat moves '.repeat(5);

/** A large file may load slowly on a small machine, which is what is measured. */
const loadLimitMs = 300_000;

/** Loads a language model as the prompt optimiser does, and lets it answer once. */
export async function measureLanguageModel(
  file: File,
  { tokens, threads }: LanguageModelBenchOptions,
): Promise<LanguageModelResult> {
  const { signal } = new AbortController();
  let speed: AnswerSpeed | undefined;
  const begin = performance.now();
  const model = await openLanguageModel(file, {
    name: file.name,
    sha256: '0'.repeat(64),
    assets: appUrl('/wllama/'),
    signal,
    loadLimitMs,
    ...(threads === undefined ? {} : { threads }),
    onSpeed: (measured) => {
      speed = measured;
    },
  });
  try {
    const loadSeconds = (performance.now() - begin) / 1000;
    const request = { system: instruction, user: 'a cat walks', seed: 7, maxTokens: tokens };
    await model.generate({ ...request, signal });
    if (!speed) throw new KinoraError('INTERNAL', 'llama.cpp gave no timings.');
    return { megabytes: file.size / 1e6, loadSeconds, speed };
  } finally {
    await model.close();
  }
}
