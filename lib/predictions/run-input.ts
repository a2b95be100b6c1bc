import type { EngineRequest } from '../contract/engine';
import { KinoraError } from '../contract/errors';
import { resolveSeed } from '../contract/parameters';
import type { Prediction } from '../contract/prediction';
import type { ParametersInput } from '../contract/request';
import type { DeviceOptions, RunRequest } from '../contract/run';
import type { Source } from './database';
import { type SourceLora, withScales } from './loras';

/** The input of a run. */
export interface RunInput extends RunRequest<ParametersInput> {
  readonly image: Blob;
  readonly imageName: string;
  /** The file of `options.lastImage`. */
  readonly lastImage?: Blob | undefined;
  /** The files of `parameters.loras`, in the same order. */
  readonly loras: readonly SourceLora[];
  /** The last latents of the video that it continues, where its motion is kept; that video where they are gone. */
  readonly before?: Blob | undefined;
  readonly device: DeviceOptions;
  /** As in `Prediction`. */
  readonly continues?: string | undefined;
}

/** An adapter of a request that waits. */
export interface WaitingLora {
  readonly name: string;
  /** Null for an adapter of the library, which is opened by its name when the run starts. */
  readonly file: Blob | null;
}

/** The input of a run that waits for its turn. */
export type WaitingInput = Omit<RunInput, 'loras'> & { readonly loras: readonly WaitingLora[] };

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
  const { parseParameters, requirePlaceOfLastImage } = await import('../contract/request');
  const { isRefusedPrompt } = await import('../contract/prompt-refusal');
  const parameters = parseParameters(input.parameters);
  if (isRefusedPrompt(parameters.prompt)) throw new KinoraError('PROMPT_REFUSED');
  requirePlaceOfLastImage(parameters, input.lastImage);
  withScales(input.loras, parameters);
  return {
    id,
    model: input.model,
    profile: input.profile,
    backend: input.device.backend,
    parameters: { ...parameters, seed: resolveSeed(parameters.seed) },
    options: input.options,
    ...(input.continues !== undefined && { continues: input.continues }),
    createdAt: new Date().toISOString(),
    status: 'created',
  };
}

/**
 * What the engine is asked for, from a row and its input files.
 *
 * @param device what is absent is the row's, or usual
 */
export function requestOf(
  { id, parameters, model, profile, backend, options, continues }: Prediction,
  { image, lastImage, loras, before }: Pick<Source, 'image' | 'lastImage' | 'loras' | 'before'>,
  device: Partial<DeviceOptions>,
): EngineRequest {
  return {
    id,
    image,
    ...(lastImage && { lastImage }),
    continues: continues !== undefined,
    before,
    parameters,
    model,
    profile,
    options,
    device: { backend, ...device },
    loras: withScales(loras, parameters),
  };
}
