/** The steps of the pipeline on the goldens, for stages to put together. */
import { KinoraError } from '../../../contract';
import { denoise } from '../../../pipeline/denoise';
import type { LatentSize } from '../../../pipeline/latents';
import type { NamedTensors } from '../../../pipeline/model';
import { createScheduler } from '../../../pipeline/schedulers';
import type { Checkpoint } from '../../../weights';
import type { Precision } from '../../layers/linear';
import type { LoraBranches } from '../../layers/lora';
import { encodePrompts } from '../../umt5/text-encoder';
import { loadTokenizer } from '../../umt5/tokenizer';
import { decodeFrames, goldenImage, videoOf } from '../../wan/parity';
import { Transformer } from '../../wan/transformer';
import { createVaeDecoder, encodeFirstFrame } from '../../wan/vae';
import { givenName, Wan22Denoiser } from '../denoiser';
import type { ParityContext } from './golden';

/** Embeddings of the golden prompt and negative prompt, 512 rows each. */
export async function encodeGoldenPrompts(context: ParityContext, precision: Precision) {
  const { golden, backend } = context;
  const { encodePrompt } = await loadTokenizer(golden.model);
  const checkpoint = await golden.components.textEncoder();
  const { prompt, negative_prompt: negative } = golden.settings;
  const ids = [prompt, negative].map(encodePrompt);
  const embeds = await encodePrompts(backend, checkpoint, golden.config.text_encoder, ids, {
    precision,
  });
  return embeds as [Float32Array, Float32Array];
}

/** Latents [C, 1, h, w] of the golden image, or of another picture of the references. */
export async function encodeGoldenImage(
  { golden, backend }: ParityContext,
  tensors: Checkpoint = golden.tensors,
  name = 'image_rgb_u8',
): Promise<Float32Array> {
  const checkpoint = await golden.components.vae();
  const { data, height, width } = await goldenImage(tensors, name);
  const image = { data, width, height };
  return encodeFirstFrame(backend, golden.config.vae, checkpoint, image);
}

/** The golden transformer, with its weights on the device. */
export async function openTransformer(
  { golden, backend }: ParityContext,
  precision: Precision,
  branches?: LoraBranches,
): Promise<Transformer> {
  const checkpoint = await golden.components.transformer();
  const options = branches ? { precision, lora: branches } : { precision };
  return Transformer.load(backend, checkpoint, golden.config.transformer, options);
}

/** @throws KinoraError `MODEL_FILE_INVALID` where the goldens have no latents */
export function latentSize({ golden }: ParityContext): LatentSize {
  if (!golden.size) throw new KinoraError('MODEL_FILE_INVALID', 'The goldens have no latents.');
  return golden.size;
}

/** What the denoising loop starts from. */
export interface LoopInputs {
  /** The given latent frames, [C, 1, h, w] each: an array has the first one alone. */
  readonly image: Float32Array | NamedTensors;
  readonly prompt: Float32Array;
  readonly negativePrompt: Float32Array;
}

/** The whole denoising loop with the golden noise. */
export async function loop(
  context: ParityContext,
  model: Transformer,
  inputs: LoopInputs,
  guidanceScale: number,
): Promise<Float32Array> {
  const { golden, backend } = context;
  const { num_inference_steps: steps, flow_shift: flowShift } = golden.settings;
  const noise = await golden.tensors.read('noise');
  return denoise(backend, new Wan22Denoiser(model, 4096), {
    size: latentSize(context),
    image: inputs.image instanceof Float32Array ? { [givenName(0)]: inputs.image } : inputs.image,
    texts: guidanceScale > 1 ? [inputs.prompt, inputs.negativePrompt] : [inputs.prompt],
    noise: () => noise,
    scheduler: createScheduler({ kind: 'unipc', steps, flowShift }),
    guidanceScale,
  });
}

/** All frames of latents [C, F, h, w] as [3, T, H, W], the layout of the golden. */
export async function decodeVideo(
  context: ParityContext,
  values: Float32Array,
): Promise<Float32Array> {
  const { golden, backend } = context;
  const checkpoint = await golden.components.vae();
  const size = latentSize(context);
  const decoder = await createVaeDecoder(backend, golden.config.vae, checkpoint, {
    latentHeight: size.height,
    latentWidth: size.width,
  });
  return videoOf(await decodeFrames(decoder, values, size));
}
