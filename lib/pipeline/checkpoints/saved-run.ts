import { at, type PromptOptimization, promptOptimizationSchema } from '../../contract';
import type { DenoiseState } from '../denoise';
import type { NamedTensors } from '../model';
import {
  decodeFile,
  type RunIdentity,
  readValues,
  type SavedFile,
  UnusableFile,
  type UnusableReason,
} from './format';

/** Where the files of one run are kept. */
export interface RunStorage {
  /** Null where there is no such file. */
  read(name: string): Promise<Blob | null>;
  /** Writes a file, in the place of one of the same name. @throws KinoraError `STORAGE_FULL` */
  write(name: string, data: Blob): Promise<void>;
  /** Deletes a file, if it exists. */
  remove(name: string): Promise<void>;
}

/** Names of the files of a run. */
export const fileNames = {
  /** Facts that are known from its start on. */
  run: 'run',
  /** What the clip under way is denoised from. */
  conditions: 'conditions',
  /** The state of the clip under way is written to one and then to the other. */
  states: ['state-a', 'state-b'],
  /** The final latents of a clip. */
  clip: (clip: number) => `clip-${clip}`,
} as const;
export type StateFile = (typeof fileNames.states)[number];

/** Facts of a run that are known from its start on. */
export interface RunValues {
  /** How often it was interrupted and resumed. */
  readonly resumes: number;
  /** The outcome of the prompt's optimisation; null where nothing was asked for. */
  readonly promptOptimization: PromptOptimization | null;
}

/** What the clip under way is denoised from. */
export interface SavedConditions {
  readonly clip: number;
  /** What the model made of its image. */
  readonly image: NamedTensors;
  readonly texts: readonly Float32Array[];
}

/** A clip whose denoising is finished. */
export interface SavedClip {
  /** [C, F, h, w] */
  readonly latents: Float32Array;
  /** Whether it was ended before its last step. */
  readonly cutShort: boolean;
}

/** The saved parts of an interrupted or finished run. */
export interface SavedRun {
  readonly resumes: number;
  readonly conditions: SavedConditions | null;
  /** From the first one on. */
  readonly clips: readonly SavedClip[];
  /** Of the clip after {@link clips}. */
  readonly state: { readonly denoise: DenoiseState; readonly file: StateFile } | null;
}

export interface ConditionsValues {
  readonly clip: number;
  /** Of the first tensors: the model's own names; the texts follow. */
  readonly names: readonly string[];
}
export type ClipValues = Pick<SavedClip, 'cutShort'>;
export interface StateValues {
  readonly clip: number;
  readonly step: number;
}

/**
 * Reads what was saved of a run.
 *
 * @param clips how many the run has
 * @returns what can be used, and why something cannot
 */
export async function readSavedRun(
  storage: RunStorage,
  identity: RunIdentity,
  clips: number,
): Promise<{ readonly saved: SavedRun | null; readonly problem: UnusableReason | null }> {
  let problem: UnusableReason | null = null;
  let hasValidFile = false;
  async function read<Values>(name: string): Promise<SavedFile<Values> | null> {
    const blob = await storage.read(name);
    if (!blob) return null;
    try {
      const file = await decodeFile<Values>(blob, identity);
      hasValidFile = true;
      return file;
    } catch (thrown) {
      if (!(thrown instanceof UnusableFile)) throw thrown;
      problem ??= thrown.reason;
      return null;
    }
  }
  const run = await read<RunValues>(fileNames.run);
  const finished: SavedClip[] = [];
  while (finished.length < clips && !finished.at(-1)?.cutShort) {
    const file = await read<ClipValues>(fileNames.clip(finished.length));
    const [latents] = file?.tensors ?? [];
    if (!file || !latents) break;
    finished.push({ ...file.values, latents });
  }
  let state: SavedRun['state'] = null;
  for (const name of fileNames.states) {
    const file = await read<StateValues>(name);
    if (file?.values.clip !== finished.length) continue;
    if (state && state.denoise.step >= file.values.step) continue;
    state = { denoise: stateOf(file), file: name };
  }
  const conditions = await read<ConditionsValues>(fileNames.conditions);
  if (!hasValidFile) return { saved: null, problem };
  return {
    saved: {
      resumes: run?.values.resumes ?? 0,
      conditions: conditions && conditionsOf(conditions),
      clips: finished,
      state,
    },
    problem,
  };
}

function conditionsOf({ values, tensors }: SavedFile<ConditionsValues>): SavedConditions {
  const { clip, names } = values;
  const image = Object.fromEntries(names.map((name, i) => [name, at(tensors, i)]));
  return { clip, image, texts: tensors.slice(names.length) };
}

function stateOf({ values, tensors }: SavedFile<StateValues>): DenoiseState {
  const [sample, last, before, prediction] = tensors;
  if (!sample || !last || !before || !prediction) throw new TypeError('a state lacks tensors');
  return { step: values.step, sample, last, before, prediction };
}

/** The tensors of a state, in the order of its file. */
export function tensorsOf({
  sample,
  last,
  before,
  prediction,
}: DenoiseState): readonly Float32Array[] {
  return [sample, last, before, prediction];
}

/** The outcome of the prompt's optimisation in a saved run; null where none is saved. */
export async function savedPromptOptimization(
  storage: RunStorage,
): Promise<PromptOptimization | null> {
  const file = await storage.read(fileNames.run);
  // A damaged record is optimised again.
  const values = file && (await readValues<RunValues>(file).catch(() => null));
  return promptOptimizationSchema.safeParse(values?.promptOptimization).data ?? null;
}

/**
 * Deletes the files of a run.
 *
 * @param clips how many it has
 * @param latents whether the final latents of its clips, and what they are decoded with, are deleted too
 */
export async function removeSaved(
  storage: RunStorage,
  clips: number,
  latents: boolean,
): Promise<void> {
  const kept = latents ? Array.from({ length: clips }, (_, i) => fileNames.clip(i)) : [];
  if (latents) kept.push(fileNames.run);
  for (const name of [fileNames.conditions, ...fileNames.states, ...kept]) {
    await storage.remove(name);
  }
}
