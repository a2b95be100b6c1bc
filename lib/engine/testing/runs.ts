import * as Comlink from 'comlink';
import {
  type EngineApi,
  type EngineRequest,
  type ParametersInput,
  type ProgressEvent,
  parseParameters,
  type RunOptions,
} from '../../contract';

export async function fetchBlob(path: string): Promise<Blob> {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.blob();
}

/** A still image of the tiny model's goldens. */
export const fetchStill = () => fetchBlob('/lib/models/wan/goldens/tiny-wan22-ti2v/image.png');

/** A request for one step of the tiny model on the CPU; parameters, options and the rest may be changed. */
export function makeRequest(
  image: Blob,
  parameters: Partial<ParametersInput> = {},
  options: RunOptions = {},
  rest: Partial<EngineRequest> = {},
): EngineRequest {
  return {
    id: crypto.randomUUID().replaceAll('-', ''),
    image,
    parameters: parseParameters({
      prompt: 'a boat on a lake',
      num_inference_steps: 1,
      guidance_scale: 1,
      seed: 42,
      ...parameters,
    }),
    model: 'tiny',
    profile: 'standard',
    options,
    device: { backend: 'wasm' },
    loras: [],
    ...rest,
  };
}

/** Generates; events go into `events` as they come. */
export function generate(
  engine: Comlink.Remote<EngineApi>,
  asked: EngineRequest,
  events: ProgressEvent[] = [],
  onEvent: (event: ProgressEvent) => void | Promise<void> = () => undefined,
) {
  return engine.generate(
    asked,
    Comlink.proxy((event: ProgressEvent) => {
      events.push(event);
      return onEvent(event);
    }),
  );
}
