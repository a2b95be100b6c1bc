import { z } from 'zod';
import { KinoraError } from '../../../contract';
import { Scope } from '../../../gpu';
import { latentFrame } from '../../../pipeline/latents';
import { compare, failure, type ParityLine } from '../../../pipeline/parity';
import { createScheduler, Solver } from '../../../pipeline/schedulers';
import { combineLoras, parseLora } from '../../layers/lora';
import { cleanPrompt, loadTokenizer } from '../../umt5/tokenizer';
import { loraArchitectureOf } from '../../wan/lora';
import {
  adaptersOf,
  combinations,
  decodeFrames,
  int8Tolerance,
  labelOf,
  openFile,
  promptRows,
} from '../../wan/parity';
import { createTinyDecoder } from '../../wan/tiny-decoder';
import { latentsToTokens, tokensPerFrame, tokensToLatents } from '../../wan/tokens';
import { type Transformer, tokenWidth } from '../../wan/transformer';
import { givenName } from '../denoiser';
import { elementTypes, publicFormats } from './formats';
import type { ParityContext } from './golden';
import {
  decodeVideo,
  encodeGoldenImage,
  encodeGoldenPrompts,
  latentSize,
  loop,
  openTransformer,
} from './pipeline';

/** A part of the check: which goldens it needs, and the lines it gives. */
export interface Stage {
  readonly name: string;
  /** Patterns of the references that it checks; it runs where the folder has any of them. */
  readonly checks: readonly RegExp[];
  run(context: ParityContext): AsyncGenerator<ParityLine>;
}

export const stages: readonly Stage[] = [
  { name: 'tokenizer', checks: [/^/], run: tokenizer },
  { name: 'text', checks: [/prompt_embeds$/], run: text },
  { name: 'image latent', checks: [/^image_latent$/], run: imageLatent },
  { name: 'transformer', checks: [/^dit_velocity$/, /^dit_block_\d+$/], run: transformer },
  { name: 'scheduler', checks: [/^(sigmas|timesteps|sched_latents)$/], run: scheduler },
  { name: 'latents', checks: [/^final_latents(_no_cfg)?$/], run: latents },
  { name: 'video', checks: [/^video$/], run: video },
  { name: 'key frames', checks: [/^final_latents$/], run: keyFrames },
  { name: 'LoRA', checks: [/^/], run: lora },
  { name: 'tiny decoders', checks: [/^final_latents$/], run: tinyDecoders },
  { name: 'element types', checks: [/^/], run: elementTypes },
  { name: 'public formats', checks: [/^noise$/], run: publicFormats },
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

async function* imageLatent(context: ParityContext): AsyncGenerator<ParityLine> {
  const expected = await context.golden.tensors.read('image_latent');
  const actual = await encodeGoldenImage(context);
  yield compare('image latent', actual, expected, context.stageTolerance);
}

/** The reference's image latent [C, 1, h, w]; our own where the folder has none. */
async function goldenLatent(context: ParityContext): Promise<Float32Array> {
  const { tensors } = context.golden;
  return tensors.has('image_latent') ? tensors.read('image_latent') : encodeGoldenImage(context);
}

/**
 * The rows of the reference's `…_embeds` that are not padding, so that a stage does not lean on our
 * own text encoder; our own embeddings where the folder has none.
 */
async function goldenEmbeds(
  context: ParityContext,
  name: 'prompt_embeds' | 'negative_prompt_embeds',
): Promise<Float32Array> {
  const { golden } = context;
  if (!golden.tensors.has(name)) {
    const [prompt, negative] = await encodeGoldenPrompts(context, 'f32');
    return name === 'prompt_embeds' ? prompt : negative;
  }
  return promptRows(await golden.tensors.read(name), golden.config.transformer.text_dim);
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
  const clip = await model.createClip(size, {
    given: [0],
    maxChunkTokens: perFrame,
    guided: false,
  });
  const embeds = await goldenEmbeds(context, 'prompt_embeds');
  const prepared = await model.prepareText(clip, embeds);
  try {
    const times = {
      conditioning: model.createTimeEmbedding(scope),
      noisy: model.createTimeEmbedding(scope),
    };
    const steps = golden.tensors.has('dit_timestep_tokens')
      ? await golden.tensors.read('dit_timestep_tokens')
      : [0, golden.settings.dit_timestep ?? Number.NaN];
    await model.embedTime(clip, steps[0] ?? Number.NaN, times.conditioning);
    await model.embedTime(clip, steps.at(-1) ?? Number.NaN, times.noisy);
    const input = await golden.tensors.read('dit_input');
    const tokens = latentsToTokens(input, config.in_channels, size, config);
    const split = clip.conditioningTokens * width;
    const rows = (data?: Float32Array) => ({
      conditioning: scope.float32([split / width, width], 'latents', data?.subarray(0, split)),
      free: scope.float32([clip.tokens - split / width, width], 'latents', data?.subarray(split)),
    });
    const velocity = rows();
    await model.velocity(clip, rows(tokens), times, [{ text: prepared, velocity }], {
      afterBlock: async (block) => {
        onBlock?.(block, await clip.read());
      },
    });
    const result = new Float32Array(tokens.length);
    result.set(await backend.read(velocity.conditioning));
    result.set(await backend.read(velocity.free), split);
    return tokensToLatents(result, config.out_channels, size, config);
  } finally {
    prepared.dispose();
    clip.dispose();
    scope.dispose();
  }
}

async function* transformer(context: ParityContext): AsyncGenerator<ParityLine> {
  const { tensors } = context.golden;
  const model = await openTransformer(context, context.precision);
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
    if (!tensors.has('dit_velocity')) return;
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
  if (!golden.tensors.has('sched_latents')) return;
  const velocities = await golden.tensors.read('sched_velocities');
  const expected = await golden.tensors.read('sched_latents');
  const noise = await golden.tensors.read('noise');
  const width = tokenWidth(golden.config.transformer);
  const solver = await Solver.open(backend, plan, 1, noise, width);
  try {
    const actual = new Float32Array(expected.length);
    for (let step = 0; step < steps; step++) {
      const part = velocities.subarray(step * noise.length, (step + 1) * noise.length);
      backend.write(solver.conditional, part);
      for (const evaluation of plan.step(step)) await solver.apply(evaluation);
      actual.set(await backend.read(solver.sample), step * noise.length);
    }
    yield compare('scheduler latents', actual, expected, stageTolerance);
  } finally {
    solver.dispose();
  }
}

/**
 * From prompt and image to latents and video, our own results all the way; only where the folder has
 * no image to start from, from its image latent.
 */
async function* latents(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, loopTolerance } = context;
  const { tensors, settings } = golden;
  const [prompt, negativePrompt] = await encodeGoldenPrompts(context, 'f32');
  const image = tensors.has('image_rgb_u8')
    ? await encodeGoldenImage(context)
    : await goldenLatent(context);
  const inputs = { image, prompt, negativePrompt };
  const model = await openTransformer(context, context.precision);
  let guided: Float32Array | undefined;
  try {
    for (const [name, guidance] of [
      ['final_latents', settings.guidance_scale],
      ['final_latents_no_cfg', 1],
    ] as const) {
      if (!tensors.has(name)) continue;
      const actual = await loop(context, model, inputs, guidance);
      guided ??= actual;
      const expected = await tensors.read(name);
      yield compare(`latents, guidance ${guidance}`, actual, expected, loopTolerance);
    }
  } finally {
    model.dispose();
  }
  if (!tensors.has('final_latents') || !guided) return;
  if (tensors.has('video')) {
    const frames = await decodeVideo(context, guided);
    const reference = await tensors.read('video');
    yield compare('video, from prompt and image', frames, reference, loopTolerance);
  }
  yield await quantisedLatents(context, image);
}

/** The same with all block and text weights in 8-bit blocks of 32. */
async function quantisedLatents(context: ParityContext, image: Float32Array): Promise<ParityLine> {
  const { golden } = context;
  const [prompt, negativePrompt] = await encodeGoldenPrompts(context, 'int8');
  const model = await openTransformer(context, 'int8');
  try {
    const guidance = golden.settings.guidance_scale;
    const actual = await loop(context, model, { image, prompt, negativePrompt }, guidance);
    const expected = await golden.tensors.read('final_latents');
    return compare('latents, 8-bit weights', actual, expected, int8Tolerance);
  } finally {
    model.dispose();
  }
}

async function* video(context: ParityContext): AsyncGenerator<ParityLine> {
  const { tensors } = context.golden;
  const frames = await decodeVideo(context, await tensors.read('final_latents'));
  yield compare('video', frames, await tensors.read('video'), context.stageTolerance);
}

const keyFrameCases = z.looseObject({
  /** By the name of the case: latent frame → `first`, `last` or `final_latents[N]`. */
  cases: z.record(z.string(), z.record(z.string(), z.string())),
});

/** The loop with other given frames, from our own latent of the last picture on. */
async function* keyFrames(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, keyFrameTolerance: tolerance } = context;
  const { folder, tensors } = golden;
  if (!(await folder.exists('keyframes.safetensors'))) return;
  const references = await openFile(folder, 'keyframes.safetensors');
  const { cases } = keyFrameCases.parse(await folder.json('keyframes.json'));
  const last = await encodeGoldenImage(context, references, 'last_rgb_u8');
  yield compare('keyframes.last_latent', last, await references.read('last_latent'), tolerance);
  const size = latentSize(context);
  const finalLatents = await tensors.read('final_latents');
  const latentOf: Readonly<Record<string, () => Promise<Float32Array>>> = {
    first: () => goldenLatent(context),
    last: async () => last,
    ...Object.fromEntries(
      Array.from({ length: size.frames }, (_, f) => [
        `final_latents[${f}]`,
        async () => latentFrame(finalLatents, size, f),
      ]),
    ),
  };
  const prompt = await goldenEmbeds(context, 'prompt_embeds');
  const negativePrompt = await goldenEmbeds(context, 'negative_prompt_embeds');
  const model = await openTransformer(context, context.precision);
  try {
    for (const [name, sources] of Object.entries(cases)) {
      const image: Record<string, Float32Array> = {};
      for (const [frame, source] of Object.entries(sources)) {
        const latent = await latentOf[source]?.();
        if (latent) image[givenName(Number(frame))] = latent;
      }
      const inputs = { image, prompt, negativePrompt };
      const actual = await loop(context, model, inputs, golden.settings.guidance_scale);
      yield compare(`keyframes.${name}`, actual, await references.read(name), tolerance);
    }
  } finally {
    model.dispose();
  }
  const frames = await decodeVideo(context, await references.read('first_last'));
  const expected = await references.read('first_last_video');
  yield compare('keyframes.first_last_video', frames, expected, tolerance);
}

async function* lora(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, stageTolerance, loopTolerance } = context;
  const { tensors, settings } = golden;
  const architecture = loraArchitectureOf(golden.config.transformer);
  const names = [...tensors.names()].filter((name) => name.includes('_lora_'));
  const files = context.loraFiles.filter((file) => !file.startsWith('wrong'));
  for (const name of names) {
    const expected = await tensors.read(name);
    const whole = name.startsWith('final_latents');
    const choices = combinations(adaptersOf(name), files);
    if (choices.length === 0) yield failure(name, loopTolerance, 'no file in loras/ fits its name');
    for (const choice of choices) {
      const parsed = [];
      for (const { file, scale } of choice) {
        const checkpoint = await openFile(golden.folder, `loras/${file}`);
        parsed.push({ lora: await parseLora(checkpoint, architecture, file), scale });
      }
      const branches = combineLoras(parsed, architecture);
      const model = await openTransformer(context, context.precision, branches);
      try {
        const inputs = async () => ({
          image: await goldenLatent(context),
          prompt: await goldenEmbeds(context, 'prompt_embeds'),
          negativePrompt: await goldenEmbeds(context, 'negative_prompt_embeds'),
        });
        const actual = whole
          ? await loop(context, model, await inputs(), settings.guidance_scale)
          : await forward(context, model);
        const stage = `${whole ? 'latents' : 'velocity'}, ${choice.map(labelOf).join(' + ')}`;
        yield compare(stage, actual, expected, whole ? loopTolerance : stageTolerance);
      } finally {
        model.dispose();
      }
    }
  }
  for (const file of context.loraFiles) {
    if (file.startsWith('wrong')) yield await refused(context, file);
  }
}

/** A LoRA of another base must be refused with a sentence that names both shapes. */
async function refused({ golden }: ParityContext, file: string): Promise<ParityLine> {
  const stage = `${file.replace('.safetensors', '')} is refused`;
  const checkpoint = await openFile(golden.folder, `loras/${file}`);
  try {
    await parseLora(checkpoint, loraArchitectureOf(golden.config.transformer), file);
    return failure(stage, 0, 'it was accepted');
  } catch (error) {
    const right = error instanceof KinoraError && error.code === 'LORA_WRONG_BASE';
    if (!right) return failure(stage, 0, String(error));
    return { stage, relativeRms: 0, maxAbsolute: 0, tolerance: 0, ok: true };
  }
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
