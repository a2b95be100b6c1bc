import * as Comlink from 'comlink';
import {
  type EngineApi,
  type EngineRequest,
  type LoraFile,
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
export const fetchStill = () => fetchBlob('/lib/models/wan22/goldens/image.png');

/** An adapter of the tiny model with a trigger word in its metadata. */
export async function fetchLora(triggerWord: string): Promise<LoraFile> {
  const golden = await fetchBlob('/lib/models/wan22/goldens/loras/a_peft.safetensors');
  const bytes = await golden.arrayBuffer();
  const headerBytes = Number(new DataView(bytes).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.slice(8, 8 + headerBytes)));
  header.__metadata__ = { ...header.__metadata__, trigger_words: triggerWord };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(text.length), true);
  const file = new Blob([size.buffer, text, bytes.slice(8 + headerBytes)]);
  return { name: 'a.safetensors', file, scale: 1 };
}

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
