import type { EngineRequest } from '../contract/engine';
import { KinoraError } from '../contract/errors';
import type { Framing } from '../contract/framing';
import type { KernelSetting } from '../contract/kernel-setting';
import { resolveSeed } from '../contract/parameters';
import type { Backend, Prediction } from '../contract/prediction';
import type { DecoderKind, ProfileName } from '../contract/profile';
import type { PromptOptimization } from '../contract/prompt-optimization';
import type { ParametersInput } from '../contract/request';
import type { Source } from './database';
import { type SourceLora, withScales } from './loras';

/** The input of a run. */
export interface RunInput {
  readonly image: Blob;
  readonly imageName: string;
  /** As in `EngineRequest`. */
  readonly framing?: Framing;
  readonly parameters: ParametersInput;
  readonly model: string;
  /** `standard` by default. */
  readonly profile?: ProfileName;
  readonly backend: Backend;
  /** The files of `parameters.loras`, in the same order. */
  readonly loras: readonly SourceLora[];
  readonly encoder?: NonNullable<EngineRequest['encoder']>;
  /** Whether image and frames are checked; false when absent. */
  readonly safetyChecker?: boolean;
  /** As in `EngineRequest`. */
  readonly promptOptimizer?: boolean | PromptOptimization;
  /** As in `EngineRequest`. */
  readonly decoder?: DecoderKind;
  readonly cache?: boolean;
  /** As in `Prediction`. */
  readonly continues?: string;
  /** Upper limit of device memory in bytes; by default the engine measures it. */
  readonly memoryBudget?: number;
  /** As in `EngineRequest`. */
  readonly kernels?: KernelSetting;
  /** As in `EngineRequest`. */
}

/** An adapter of a request that waits. */
export interface WaitingLora {
  readonly name: string;
  /** Null for an adapter of the library, which is opened by its name when the run starts. */
  readonly file: Blob | null;
}

/** The input of a run that waits for its turn. */
export type WaitingInput = Omit<RunInput, 'loras'> & { readonly loras: readonly WaitingLora[] };

/** Settings of the device, which are not part of a prediction. */
export type DeviceOptions = Pick<RunInput, 'memoryBudget' | 'kernels'>;

/** An id that no other prediction has. */
export function newPredictionId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

/** Validates the input; sets the seed if it is −1. */
export async function createPrediction(
  input: WaitingInput,
  id = newPredictionId(),
): Promise<Prediction> {
  // They are large: a page loads them with the first run.
  const { parseParameters } = await import('../contract/request');
  const { isRefusedPrompt } = await import('../contract/prompt-refusal');
  const parameters = parseParameters(input.parameters);
  if (isRefusedPrompt(parameters.prompt)) throw new KinoraError('PROMPT_REFUSED');
  withScales(input.loras, parameters);
  return {
    id,
    model: input.model,
    profile: input.profile ?? 'standard',
    backend: input.backend,
    parameters: { ...parameters, seed: resolveSeed(parameters.seed) },
    ...switchesOf(input),
    ...(input.continues !== undefined && { continues: input.continues }),
    createdAt: new Date().toISOString(),
    status: 'created',
  };
}

/** What the engine is asked for, from a row and its input files. */
export function requestOf(
  prediction: Prediction,
  { image, loras }: Pick<Source, 'image' | 'loras'>,
  options: DeviceOptions & Pick<RunInput, 'encoder'>,
): EngineRequest {
  const { id, parameters, model, profile, backend } = prediction;
  const { encoder = 'auto', memoryBudget, kernels } = options;
  return {
    id,
    image,
    parameters,
    model,
    profile,
    backend,
    encoder,
    loras: withScales(loras, parameters),
    ...(memoryBudget !== undefined && { memoryBudget }),
    ...(kernels && { kernels }),
    ...switchesOf(prediction),
  };
}

/** What a run is asked for besides parameters and model, as far as it is. */
export function switchesOf({
  framing,
  safetyChecker,
  promptOptimizer,
  decoder,
  cache,
}: SwitchInput): Switches {
  return {
    ...(framing && { framing }),
    ...(decoder && { decoder }),
    ...(cache !== undefined && { cache }),
    ...(safetyChecker && { safetyChecker }),
    ...(promptOptimizer && { promptOptimizer }),
  };
}

type SwitchNames = 'framing' | 'safetyChecker' | 'promptOptimizer' | 'decoder' | 'cache';
type SwitchInput = Pick<RunInput, SwitchNames>;
type Switches = Pick<Prediction, SwitchNames>;
