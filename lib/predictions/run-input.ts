import {
  type Created,
  type DeviceOptions,
  type EngineRequest,
  KinoraError,
  type LoraFile,
  type Parameters,
  type ParametersInput,
  type RunRequest,
} from '../contract';
import type { Source } from './database';
import { withScales } from './loras';

/** Files of a prediction, besides its request. */
export type SourceFiles = Omit<Source, 'predictionId'>;

/** A request with its files, as a form or a command gives it: nothing of it is checked. */
export interface RunInput extends RunRequest<ParametersInput>, Omit<SourceFiles, 'thumbnail'> {
  readonly device: DeviceOptions;
  /** As in `Prediction`. */
  readonly continues?: string | undefined;
}

/** An id that no other prediction has. */
export function newPredictionId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

/**
 * Validates the parameters of a request where it comes in, and fills in defaults: of a form, a command, or a job.
 *
 * @param lastImage undefined where there is no end image
 * @throws KinoraError `PROMPT_EMPTY`, `PROMPT_REFUSED`, `PARAMETER_INVALID`, and what `requirePlaceOfLastImage` throws
 */
export async function validParameters(asked: unknown, lastImage: unknown): Promise<Parameters> {
  // They are large: a page loads them with the first run.
  const { parseParameters, requirePlaceOfLastImage } = await import('../contract/request');
  const { isRefusedPrompt } = await import('../contract/prompt-refusal');
  const parameters = parseParameters(asked);
  if (isRefusedPrompt(parameters.prompt)) throw new KinoraError('PROMPT_REFUSED');
  requirePlaceOfLastImage(parameters, lastImage);
  return parameters;
}

/**
 * Validates a request; it can wait, or start.
 *
 * @throws KinoraError of {@link validParameters}, `REQUEST_INVALID` where a LoRA has no file
 */
export async function createPrediction(input: RunInput): Promise<Created> {
  const { lastImage, loras, model, profile, options, device, continues } = input;
  const parameters = await validParameters(input.parameters, lastImage);
  withScales(loras, parameters);
  return newRow({ model, profile, parameters, options, device, continues });
}

/** The row of a valid request. */
export function newRow({
  continues,
  ...run
}: RunRequest & Pick<RunInput, 'device' | 'continues'>): Created {
  return {
    id: newPredictionId(),
    ...run,
    backend: run.device.backend,
    ...(continues !== undefined && { continues }),
    createdAt: new Date().toISOString(),
    status: 'created',
    position: 0,
  };
}

/** The request to the engine, of a valid request and its files. */
export function requestOf(
  run: RunRequest & { readonly id: string; readonly continues?: string },
  files: Pick<EngineRequest, 'image' | 'lastImage' | 'before'> & {
    readonly loras: readonly Omit<LoraFile, 'scale'>[];
  },
  device: DeviceOptions,
): EngineRequest {
  const { id, parameters, model, profile, options, continues } = run;
  const { image, lastImage, loras, before } = files;
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
    device,
    loras: withScales(loras, parameters),
  };
}
