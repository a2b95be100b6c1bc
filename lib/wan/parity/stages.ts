import { KinoraError } from '../../contract';
import { Scope } from '../../gpu';
import { type Checkpoint, openCheckpoint } from '../../weights';
import { transformerDim } from '../config';
import { denoise } from '../denoise';
import type { Precision } from '../layers';
import { combineLoras, type LoraBranches, parseLora } from '../lora';
import { cleanPrompt } from '../prompt';
import { createScheduler } from '../scheduler';
import { Solver } from '../solver';
import { encodePrompts } from '../text-encoder';
import { createTinyDecoder } from '../tiny-decoder';
import { loadTokenizer } from '../tokenizer';
import {
  type LatentSize,
  latentFrame,
  latentsToTokens,
  tokensPerFrame,
  tokensToLatents,
} from '../tokens';
import { createClipMemory, Transformer } from '../transformer';
import { createVaeDecoder, encodeFirstFrame, type FrameDecoder } from '../vae';
import { compare, failure, type ParityLine } from './compare';
import { openFile, type ParityContext } from './golden';

/** A part of the check: which goldens it needs, and the lines it gives. */
export interface Stage {
  readonly name: string;
  readonly needs: readonly string[];
  run(context: ParityContext): AsyncGenerator<ParityLine>;
}

/** Tolerance of the loop with weights in 8-bit blocks of 32. */
const int8Tolerance = 5e-2;

export const stages: readonly Stage[] = [
  { name: 'tokenizer', needs: [], run: tokenizer },
  { name: 'text', needs: ['prompt_embeds'], run: text },
  { name: 'image latent', needs: ['image_latent', 'image_rgb_u8'], run: imageLatent },
  { name: 'transformer', needs: ['dit_input', 'dit_velocity', 'prompt_embeds'], run: transformer },
  { name: 'scheduler', needs: ['sched_velocities', 'sched_latents', 'noise'], run: scheduler },
  { name: 'latents', needs: ['final_latents', 'noise', 'image_rgb_u8'], run: latents },
  { name: 'video', needs: ['final_latents', 'video'], run: video },
  { name: 'LoRA', needs: ['noise', 'image_latent', 'prompt_embeds'], run: lora },
  { name: 'tiny decoders', needs: ['final_latents'], run: tinyDecoders },
];

async function* tokenizer({ golden }: ParityContext): AsyncGenerator<ParityLine> {
  const { tokenizer_prompts: prompts, tokenizer_ids: ids, cleaned } = golden.settings;
  if (prompts.length === 0) return;
  const { encodePrompt } = await loadTokenizer(golden.model);
  for (const [i, prompt] of prompts.entries()) {
    const stage = `token ids, prompt ${i} (${ids[i]?.length ?? 0})`;
    const line = compare(stage, encodePrompt(prompt), ids[i] ?? [], 0);
    // The empty prompt's ids are never all zero, so a norm is there to divide by.
    const clean = cleaned[i] === undefined || cleanPrompt(prompt) === cleaned[i];
    yield clean ? line : failure(stage, 0, 'the cleaned text differs');
  }
}

async function encodeGoldenPrompts(context: ParityContext, precision: Precision) {
  const { golden, backend } = context;
  const { encodePrompt } = await loadTokenizer(golden.model);
  const checkpoint = await openCheckpoint(golden.model, 'text_encoder');
  const { prompt, negative_prompt: negative } = golden.settings;
  const ids = [prompt, negative].map(encodePrompt);
  const embeds = await encodePrompts(backend, checkpoint, golden.config.text_encoder, ids, {
    precision,
  });
  return embeds as [Float32Array, Float32Array];
}

async function* text(context: ParityContext): AsyncGenerator<ParityLine> {
  const { tensors } = context.golden;
  const embeds = await encodeGoldenPrompts(context, 'f32');
  for (const [i, name] of ['prompt_embeds', 'negative_prompt_embeds'].entries()) {
    if (!tensors.has(name)) continue;
    const expected = await tensors.read(name);
    const padded = new Float32Array(expected.length); // [512, d], zero past the prompt
    padded.set(embeds[i] as Float32Array);
    yield compare(name, padded, expected, context.stageTolerance);
  }
}

/** `image_rgb_u8` [H, W, 3] as planar [3, H, W] in −1…1. */
async function goldenImage(tensors: Checkpoint) {
  const [height = 0, width = 0] = tensors.shape('image_rgb_u8');
  const bytes = await tensors.read('image_rgb_u8');
  const data = new Float32Array(3 * height * width);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      data[c * height * width + i] = (bytes[i * 3 + c] as number) / 127.5 - 1;
    }
  }
  return { data, height, width };
}

async function encodeGoldenImage({ golden, backend }: ParityContext): Promise<Float32Array> {
  const checkpoint = await openCheckpoint(golden.model, 'vae');
  const { data, height, width } = await goldenImage(golden.tensors);
  const image = { data, width, height };
  return encodeFirstFrame(backend, golden.config.vae, checkpoint, image);
}

async function* imageLatent(context: ParityContext): AsyncGenerator<ParityLine> {
  const expected = await context.golden.tensors.read('image_latent');
  const actual = await encodeGoldenImage(context);
  yield compare('image latent', actual, expected, context.stageTolerance);
}

/** The rows of `…_embeds` that are not padding: the stage must not lean on our own text encoder. */
async function goldenEmbeds(context: ParityContext, name: string): Promise<Float32Array> {
  const { golden } = context;
  const embeds = await golden.tensors.read(name);
  const width = golden.config.transformer.text_dim;
  let length = embeds.length / width;
  const empty = (row: number) =>
    embeds.subarray(row * width, (row + 1) * width).every((value) => value === 0);
  while (length > 1 && empty(length - 1)) length -= 1;
  return embeds.slice(0, length * width);
}

async function openTransformer(
  { golden, backend }: ParityContext,
  precision: Precision,
  branches?: LoraBranches,
): Promise<Transformer> {
  const checkpoint = await openCheckpoint(golden.model, 'transformer');
  const options = branches ? { precision, lora: branches } : { precision };
  return Transformer.load(backend, checkpoint, golden.config.transformer, options);
}

function latentSize({ golden }: ParityContext): LatentSize {
  if (!golden.size) throw new KinoraError('MODEL_FILE_INVALID', 'The goldens have no latents.');
  return golden.size;
}

/** One forward pass on `dit_input`; reads the blocks too where `onBlock` is given. */
async function forward(
  context: ParityContext,
  model: Transformer,
  onBlock?: (block: number, hidden: Float32Array) => void,
): Promise<Float32Array> {
  const { golden, backend } = context;
  const { transformer: config } = golden.config;
  const size = latentSize(context);
  const perFrame = tokensPerFrame(config, size);
  const width = model.weights.patchEmbedding.spec.inFeatures;
  const scope = new Scope(backend);
  // One frame per chunk: the check shall cross the seams between chunks.
  const clip = createClipMemory(backend, config, size, {
    heldFrames: 1,
    maxChunkTokens: perFrame,
    guided: false,
  });
  const embeds = await goldenEmbeds(context, 'prompt_embeds');
  const prepared = await model.prepareText(embeds, clip);
  try {
    const times = {
      held: model.createTimeEmbedding(scope),
      free: model.createTimeEmbedding(scope),
    };
    const steps = await golden.tensors.read('dit_timestep_tokens');
    await model.embedTime(steps[0] ?? 0, times.held);
    await model.embedTime(steps.at(-1) ?? golden.settings.dit_timestep ?? 0, times.free);
    const input = await golden.tensors.read('dit_input');
    const tokens = latentsToTokens(input, config.in_channels, size, config);
    const inputTensor = scope.float32([clip.tokens, width], 'latents', tokens);
    const velocity = scope.float32([clip.tokens, width], 'latents');
    await model.velocity(clip, inputTensor, times, [{ text: prepared, velocity }], {
      includeHeld: true,
      afterBlock: async (block) => {
        if (!onBlock) return;
        const hidden = new Float32Array(clip.tokens * transformerDim(config));
        for (const [index, { start }] of clip.chunks.entries()) {
          const part = await backend.read(clip.hidden.get(index));
          hidden.set(part, start * transformerDim(config));
        }
        onBlock(block, hidden);
      },
    });
    return tokensToLatents(await backend.read(velocity), config.out_channels, size, config);
  } finally {
    prepared.dispose();
    clip.dispose();
    scope.dispose();
  }
}

async function* transformer(context: ParityContext): AsyncGenerator<ParityLine> {
  const { tensors } = context.golden;
  const model = await openTransformer(context, 'f32');
  try {
    const blocks: Float32Array[] = [];
    const velocity = await forward(context, model, (block, hidden) => {
      blocks[block] = hidden;
    });
    for (const [block, hidden] of blocks.entries()) {
      const name = `dit_block_${block}`;
      if (!tensors.has(name)) continue;
      const expected = await tensors.read(name);
      yield compare(`transformer block ${block}`, hidden, expected, context.stageTolerance);
    }
    const expected = await tensors.read('dit_velocity');
    yield compare('transformer velocity', velocity, expected, context.stageTolerance);
  } finally {
    model.dispose();
  }
}

/** The scheduler alone, on the device, from stored velocities: step by step. */
async function* scheduler(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, backend, stageTolerance } = context;
  const { num_inference_steps: steps, flow_shift: flowShift } = golden.settings;
  const plan = createScheduler({ kind: 'unipc', steps, flowShift });
  for (const [name, values] of [
    ['sigmas', plan.sigmas],
    ['timesteps', plan.timesteps],
  ] as const) {
    if (!golden.tensors.has(name)) continue;
    yield compare(`scheduler ${name}`, values, await golden.tensors.read(name), stageTolerance);
  }
  const velocities = await golden.tensors.read('sched_velocities');
  const expected = await golden.tensors.read('sched_latents');
  const noise = await golden.tensors.read('noise');
  const solver = new Solver(backend, plan, 1, noise, 1);
  try {
    const actual = new Float32Array(expected.length);
    for (let step = 0; step < steps; step++) {
      const part = velocities.subarray(step * noise.length, (step + 1) * noise.length);
      backend.write(solver.conditional, part);
      await solver.step(step);
      actual.set(await backend.read(solver.sample), step * noise.length);
    }
    yield compare('scheduler latents', actual, expected, stageTolerance);
  } finally {
    solver.dispose();
  }
}

interface LoopInputs {
  readonly held: Float32Array;
  readonly prompt: Float32Array;
  readonly negativePrompt: Float32Array;
}

/** The whole denoising loop with the golden noise; `held` is the image latent [C, 1, h, w]. */
async function loop(
  context: ParityContext,
  model: Transformer,
  inputs: LoopInputs,
  guidanceScale: number,
): Promise<Float32Array> {
  const { golden, backend } = context;
  const { transformer: config } = golden.config;
  const size = latentSize(context);
  const { num_inference_steps: steps, flow_shift: flowShift } = golden.settings;
  const channels = config.in_channels;
  const tokens = await denoise(backend, model, {
    size,
    held: latentsToTokens(inputs.held, channels, { ...size, frames: 1 }, config),
    noise: latentsToTokens(await golden.tensors.read('noise'), channels, size, config),
    scheduler: createScheduler({ kind: 'unipc', steps, flowShift }),
    guidanceScale,
    prompt: inputs.prompt,
    negativePrompt: inputs.negativePrompt,
    maxChunkTokens: 4096,
  });
  return tokensToLatents(tokens, channels, size, config);
}

/** From prompt and image to latents, our own results all the way; then to the video. */
async function* latents(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, loopTolerance } = context;
  const [prompt, negativePrompt] = await encodeGoldenPrompts(context, 'f32');
  const inputs = { held: await encodeGoldenImage(context), prompt, negativePrompt };
  const guidance = golden.settings.guidance_scale;
  const expected = await golden.tensors.read('final_latents');
  const model = await openTransformer(context, 'f32');
  let actual: Float32Array;
  try {
    actual = await loop(context, model, inputs, guidance);
    yield compare(`latents, guidance ${guidance}`, actual, expected, loopTolerance);
    if (golden.tensors.has('final_latents_no_cfg')) {
      const single = await loop(context, model, inputs, 1);
      const reference = await golden.tensors.read('final_latents_no_cfg');
      yield compare('latents, guidance 1', single, reference, loopTolerance);
    }
  } finally {
    model.dispose();
  }
  if (golden.tensors.has('video')) {
    const frames = await decodeVideo(context, actual);
    const reference = await golden.tensors.read('video');
    yield compare('video, from prompt and image', frames, reference, loopTolerance);
  }
  const quantisedText = await encodeGoldenPrompts(context, 'int8');
  const quantised = await openTransformer(context, 'int8');
  try {
    const held = inputs.held;
    const [q, n] = quantisedText;
    const result = await loop(context, quantised, { held, prompt: q, negativePrompt: n }, guidance);
    yield compare('latents, 8-bit weights', result, expected, int8Tolerance);
  } finally {
    quantised.dispose();
  }
}

/** All frames of latents [C, F, h, w] as [3, T, H, W], the layout of the golden. */
async function decodeVideo(context: ParityContext, values: Float32Array): Promise<Float32Array> {
  const { golden, backend } = context;
  const checkpoint = await openCheckpoint(golden.model, 'vae');
  const size = latentSize(context);
  const decoder = await createVaeDecoder(backend, golden.config.vae, checkpoint, {
    latentHeight: size.height,
    latentWidth: size.width,
  });
  const frames = await decodeFrames(decoder, values, size);
  const plane = (frames[0]?.length ?? 0) / 3;
  const video = new Float32Array(3 * frames.length * plane);
  for (const [t, frame] of frames.entries()) {
    for (let c = 0; c < 3; c++) {
      const source = frame.subarray(c * plane, (c + 1) * plane);
      video.set(source, (c * frames.length + t) * plane);
    }
  }
  return video;
}

async function decodeFrames(
  decoder: FrameDecoder,
  values: Float32Array,
  size: LatentSize,
): Promise<Float32Array[]> {
  const frames: Float32Array[] = [];
  try {
    for (let f = 0; f < size.frames; f++) {
      for await (const frame of decoder.decode(latentFrame(values, size, f))) {
        frames.push(frame.slice());
      }
    }
  } finally {
    decoder.dispose();
  }
  return frames;
}

async function* video(context: ParityContext): AsyncGenerator<ParityLine> {
  const { tensors } = context.golden;
  const frames = await decodeVideo(context, await tensors.read('final_latents'));
  yield compare('video', frames, await tensors.read('video'), context.stageTolerance);
}

/** `…_lora_a08_b17` in a golden's name: adapter a at 0.8 and b at 1.7. */
function adaptersOf(name: string): { letter: string; scale: number }[] {
  const tail = name.split('_lora_')[1] ?? '';
  return [...tail.matchAll(/([a-z]+)(\d+)/g)].map(([, letter = '', digits = '']) => ({
    letter,
    scale: Number(digits) / 10,
  }));
}

async function* lora(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, stageTolerance, loopTolerance } = context;
  const { tensors, settings } = golden;
  const config = golden.config.transformer;
  const names = [...tensors.names()].filter((name) => name.includes('_lora_'));
  const files = (await loraFiles(context)).filter((file) => !file.startsWith('wrong'));
  for (const name of names) {
    const expected = await tensors.read(name);
    const whole = name.startsWith('final_latents');
    for (const choice of combinations(adaptersOf(name), files)) {
      const parsed = [];
      for (const { file, scale } of choice) {
        const checkpoint = await openFile(golden.folder, `loras/${file}`);
        parsed.push({ lora: await parseLora(checkpoint, config, file), scale });
      }
      const branches = combineLoras(parsed, config);
      const model = await openTransformer(context, 'f32', branches);
      try {
        const inputs = async () => ({
          held: await tensors.read('image_latent'),
          prompt: await goldenEmbeds(context, 'prompt_embeds'),
          negativePrompt: await goldenEmbeds(context, 'negative_prompt_embeds'),
        });
        const actual = whole
          ? await loop(context, model, await inputs(), settings.guidance_scale)
          : await forward(context, model);
        const stage = `${whole ? 'latents' : 'velocity'}, ${choice.map(label).join(' + ')}`;
        yield compare(stage, actual, expected, whole ? loopTolerance : stageTolerance);
      } finally {
        model.dispose();
      }
    }
  }
  for (const file of (await loraFiles(context)).filter((name) => name.startsWith('wrong'))) {
    yield await refused(context, file);
  }
}

const label = ({ file, scale }: { file: string; scale: number }) =>
  `${file.replace('.safetensors', '')} ${scale}`;

/** A LoRA of another base must be refused with a sentence that names both shapes. */
async function refused({ golden }: ParityContext, file: string): Promise<ParityLine> {
  const stage = `${file.replace('.safetensors', '')} is refused`;
  const checkpoint = await openFile(golden.folder, `loras/${file}`);
  try {
    await parseLora(checkpoint, golden.config.transformer, file);
    return failure(stage, 0, 'it was accepted');
  } catch (error) {
    const right = error instanceof KinoraError && error.code === 'LORA_WRONG_BASE';
    if (!right) return failure(stage, 0, String(error));
    return { stage, relativeRms: 0, maxAbsolute: 0, tolerance: 0, ok: true };
  }
}

/** Every way to take one file per adapter; a file belongs to the adapter whose letter it starts with. */
function combinations(
  adapters: readonly { letter: string; scale: number }[],
  files: readonly string[],
): { file: string; scale: number }[][] {
  return adapters.reduce<{ file: string; scale: number }[][]>(
    (choices, { letter, scale }) =>
      choices.flatMap((choice) =>
        files
          .filter((file) => file.startsWith(`${letter}_`))
          .map((file) => [...choice, { file, scale }]),
      ),
    [[]],
  );
}

/** Known names of adapter files; a folder behind HTTP cannot be listed. */
const loraNames = [
  'a_peft.safetensors',
  'a_comfy.safetensors',
  'a_kohya_alpha.safetensors',
  'b_lightx2v_diff_b.safetensors',
  'wrong_base_14b.safetensors',
] as const;

async function loraFiles({ golden }: ParityContext): Promise<string[]> {
  const found = await Promise.all(
    loraNames.map(async (name) => ((await golden.folder.exists(`loras/${name}`)) ? name : '')),
  );
  return found.filter((name) => name !== '');
}

async function* tinyDecoders(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, backend, stageTolerance } = context;
  const size = latentSize(context);
  for (const variant of ['base', 'super']) {
    const path = `formats/tiny-decoder-${variant}`;
    if (!(await golden.folder.exists(`${path}-golden.safetensors`))) continue;
    const checkpoint = await openFile(golden.folder, `${path}.safetensors`);
    const reference = await openFile(golden.folder, `${path}-golden.safetensors`);
    const decoder = await createTinyDecoder(backend, checkpoint, {
      latentHeight: size.height,
      latentWidth: size.width,
    });
    const values = await golden.tensors.read('final_latents');
    const frames = await decodeFrames(decoder, values, size);
    const expected = await reference.read('frames'); // [1, T, 3, H, W]
    const actual = new Float32Array(frames.reduce((sum, frame) => sum + frame.length, 0));
    frames.forEach((frame, t) => {
      actual.set(frame, t * frame.length);
    });
    yield compare(`tiny decoder, ${variant}`, actual, expected, stageTolerance);
  }
}
