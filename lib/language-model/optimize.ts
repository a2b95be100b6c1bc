import {
  appUrl,
  isRefusedPrompt,
  KinoraError,
  type ProgressEvent,
  type PromptOptimization,
  toKinoraError,
} from '../contract';
import type { OptimizeOptions } from '../prompts';
import { type OpenLanguageModel, openLanguageModel } from './wllama-model';

/** Dependencies of an optimisation with the installed language model. */
export interface OptimizerDependencies {
  /** The installed model; null where there is none. */
  readonly find: () => Promise<{ file: File; name: string; sha256: string } | null>;
  /** `optimizePrompt` of lib/prompts. */
  readonly optimize: (prompt: string, options: OptimizeOptions) => Promise<PromptOptimization>;
  /** Folder of `wllama.wasm`; `/wllama/` of this origin when absent. */
  readonly assets?: URL;
}

type RunOptions = Omit<OptimizeOptions, 'model'>;

/**
 * Continues a prompt with the installed language model. The model is loaded for it and its memory is
 * freed before this returns; the limit of time counts from when it is loaded.
 *
 * @returns the record, with all milliseconds from here; `unavailable` where no model is installed
 * @throws KinoraError as {@link openLanguageModel}; what `optimize` throws
 */
export async function optimizeWithInstalled(
  dependencies: OptimizerDependencies,
  prompt: string,
  options: RunOptions,
): Promise<PromptOptimization> {
  const now = options.now ?? (() => performance.now());
  const begin = now();
  const installed = await dependencies.find();
  if (!installed) return original(prompt, 'unavailable', 'no language model is installed');
  const { file, ...named } = installed;
  const assets = dependencies.assets ?? appUrl('/wllama/');
  let model: OpenLanguageModel | undefined;
  try {
    model = await openLanguageModel(file, { ...named, assets, signal: options.signal });
    const optimized = await dependencies.optimize(prompt, { ...options, model });
    const record = { ...optimized, milliseconds: Math.round(now() - begin) };
    if (!isRefusedPrompt(record.text)) return record;
    return { ...record, status: 'failed', text: prompt, reasons: [...record.reasons, 'refused'] };
  } finally {
    await model?.close();
  }
}

/**
 * The phase `optimise` of a run in the engine: as {@link optimizeWithInstalled}, but a language model
 * that fails does not end the run, which goes on with the user's own words and says so.
 *
 * @param run `report` gets the phase before anything else
 * @returns the record, whose text is the prompt of the video
 * @throws KinoraError `CANCELLED` once `signal` is aborted
 */
export async function optimiserStep(
  dependencies: OptimizerDependencies,
  prompt: string,
  run: RunOptions & { readonly report: (event: ProgressEvent) => void },
): Promise<PromptOptimization> {
  const { report, ...options } = run;
  report({ type: 'phase', phase: 'optimise', clip: 0, clips: 1 });
  try {
    return await optimizeWithInstalled(dependencies, prompt, options);
  } catch (thrown) {
    if (options.signal.aborted) throw new KinoraError('CANCELLED', undefined, { cause: thrown });
    const { code, message } = toKinoraError(thrown);
    return original(prompt, 'failed', `${code}: ${message}`.slice(0, longestReason));
  }
}

/** Characters of a reason that the record takes. */
const longestReason = 200;

function original(
  prompt: string,
  status: PromptOptimization['status'],
  reason: string,
): PromptOptimization {
  return {
    status,
    original: prompt,
    text: prompt,
    reasons: [reason],
    model: null,
    sha256: null,
    seed: null,
    milliseconds: 0,
  };
}
