/** What the stages of the Wan models compute: each line beside the name of its reference. */
import { z } from 'zod';
import { at, toKinoraError } from '../contract';
import { parseLora } from '../models/layers/lora';
import { cleanPrompt, loadTokenizer } from '../models/umt5/tokenizer';
import { conditionName, featuresName, givenName } from '../models/wan/condition';
import { encoderPixels } from '../models/wan/image-encoder/image-encoder';
import { createTinyDecoder } from '../models/wan/tiny-decoder';
import { tokenWidth } from '../models/wan/transformer';
import { openComponent } from '../models/wan/wan-naming';
import { splitLatents } from '../pipeline/latents';
import { createScheduler, Solver } from '../pipeline/schedulers';
import { checkpointOf, locateTensors, openTensorFile } from '../weights';
import { frameOf, openFile, type Results, readPicture, readPng, wholeFile } from './golden';
import { modelOf, type ScaledFile, textNames, Wan } from './wan';

export async function* tokenizer({ settings, golden }: Wan): Results {
  const { tokenizer_prompts: prompts, tokenizer_ids: ids, cleaned } = settings;
  const { encodePrompt } = await loadTokenizer(modelOf(golden));
  for (const [i, prompt] of prompts.entries()) {
    const line = `token ids, prompt ${i} (${ids[i]?.length ?? 0})`;
    // The empty prompt's ids are never all zero, so a norm is there to divide by.
    const isClean = cleaned[i] === undefined || cleanPrompt(prompt) === cleaned[i];
    yield isClean ? [line, encodePrompt(prompt), ids[i] ?? []] : [line, 'the cleaned text differs'];
  }
}

export async function* text(wan: Wan): Results {
  const own = await wan.ownTexts('f32');
  for (const [i, name] of textNames.entries()) {
    if (wan.golden.tensors.has(name)) yield [name, at(own, i), await wan.embeds(name)];
  }
}

export async function* imageLatent(wan: Wan): Results {
  const { [givenName(0)]: latent = [] } = await wan.conditions();
  yield ['image latent', latent, 'image_latent'];
}

export async function* imageEncoder(wan: Wan): Results {
  const { image_encoder: config } = wan.config;
  if (!config) return;
  const image = await readPicture(wan.golden.tensors, 'image_rgb_u8');
  yield ['image encoder, pixels', encoderPixels(image, config), 'clip_pixels'];
  const { [featuresName]: features = [] } = await wan.conditions();
  yield ['image encoder, features', features, 'clip_hidden'];
}

export async function* condition(wan: Wan): Results {
  const { [conditionName]: channels = [] } = await wan.conditions();
  yield ['condition', channels, 'condition'];
}

export async function* transformer(wan: Wan): Results {
  const blocks: Float32Array[] = [];
  const velocity = await wan.forward({}, (block, hidden) => {
    blocks[block] = hidden;
  });
  for (const [block, hidden] of blocks.entries()) {
    yield [`transformer block ${block}`, hidden, `dit_block_${block}`];
  }
  yield ['transformer velocity', velocity, 'dit_velocity'];
}

/** The scheduler alone, on the device, from stored velocities: step by step. */
export async function* scheduler({ golden, settings, config }: Wan): Results {
  const { backend, tensors, own } = golden;
  const { num_inference_steps: steps, flow_shift: flowShift } = settings;
  const plan = createScheduler({ kind: 'unipc', steps, flowShift });
  yield ['scheduler sigmas', plan.sigmas, 'sigmas'];
  yield ['scheduler timesteps', plan.timesteps, 'timesteps'];
  if (!tensors.has('sched_latents')) return;
  const velocities = await tensors.read('sched_velocities');
  const noise = await tensors.read('noise');
  const actual = new Float32Array(velocities.length);
  const solver = own(await Solver.open(backend, plan, 1, noise, tokenWidth(config.transformer)));
  for (let step = 0; step < steps; step++) {
    const start = step * noise.length;
    backend.write(solver.conditional, velocities.subarray(start, start + noise.length));
    for (const evaluation of plan.step(step)) await solver.apply(evaluation);
    actual.set(await backend.read(solver.sample), start);
  }
  yield ['scheduler latents', actual, 'sched_latents'];
}

/** From prompt and image to latents and video, our own results all the way. */
export async function* latents(wan: Wan, names: readonly string[]): Results {
  const { guidance_scale: scale } = wan.settings;
  const hasText = wan.config.text_encoder !== undefined;
  let guided: Float32Array | undefined;
  for (const name of names) {
    const isGuided = name === 'final_latents';
    const actual = await wan.whole(isGuided ? {} : { guidance: 1 });
    if (isGuided) guided = actual;
    yield [hasText ? `latents, guidance ${isGuided ? scale : 1}` : 'latents', actual, name];
  }
  if (!guided || !wan.golden.tensors.has('video')) return;
  const from = hasText ? 'prompt and image' : 'image';
  yield [`video, from ${from}`, await wan.video(guided), 'video'];
}

/** The same with all block and text weights in 8-bit blocks of 32. */
export async function* quantised(wan: Wan, [name = '']: readonly string[]): Results {
  yield ['latents, 8-bit weights', await wan.whole({ precision: 'int8' }), name];
}

export async function* video(wan: Wan): Results {
  yield ['video', await wan.video(await wan.golden.tensors.read('final_latents')), 'video'];
}

/** A clip that ends in a picture. */
export async function* lastImage(wan: Wan, [name = '']: readonly string[]): Results {
  const last = frameOf(await readPng(wan.golden.folder, 'last.png'), 4);
  const image = await wan.conditions(last);
  yield ['latents, last image', await wan.latents({ image }), name];
}

const keyFrameCases = z.looseObject({
  /** By the name of the case: latent frame → `first`, `last` or `final_latents[N]`. */
  cases: z.record(z.string(), z.record(z.string(), z.string())),
});

/** The loop with other given frames, from our own latent of the last picture on. */
export async function* keyFrames(wan: Wan): Results {
  const { folder, tensors } = wan.golden;
  if (!(await folder.exists('keyframes.safetensors'))) return;
  const references = await openFile(folder, 'keyframes.safetensors');
  const { cases } = keyFrameCases.parse(await folder.json('keyframes.json'));
  const last = await wan.latentOf(await readPicture(references, 'last_rgb_u8'));
  yield ['keyframes.last_latent', last, await references.read('last_latent')];
  const final = splitLatents(await tensors.read('final_latents'), wan.size);
  const { [givenName(0)]: first } = await wan.givenConditions();
  const latents: Readonly<Record<string, Float32Array | undefined>> = {
    first,
    last,
    ...Object.fromEntries(final.map((latent, frame) => [`final_latents[${frame}]`, latent])),
  };
  for (const [name, sources] of Object.entries(cases)) {
    const image: Record<string, Float32Array> = {};
    for (const [frame, source] of Object.entries(sources)) {
      const latent = latents[source];
      if (latent) image[givenName(Number(frame))] = latent;
    }
    yield [`keyframes.${name}`, await wan.latents({ image }), await references.read(name)];
  }
  const frames = await wan.video(await references.read('first_last'));
  yield ['keyframes.first_last_video', frames, await references.read('first_last_video')];
}

const withoutEnding = (file: string) => file.replace('.safetensors', '');

/** Each way to take the adapters of a reference's name from the files of `loras/`. */
export async function* lora(wan: Wan, names: readonly string[]): Results {
  const files = wan.golden.loraFiles.filter((file) => !file.startsWith('wrong'));
  for (const name of names) {
    const choices = choicesOf(name, files);
    if (choices.length === 0) yield [name, 'no file in loras/ fits its name'];
    for (const choice of choices) {
      const given = { lora: await wan.readLora(choice) };
      const isWhole = name.startsWith('final_latents');
      const actual = await (isWhole ? wan.latents(given) : wan.forward(given));
      const labels = choice.map(([file, scale]) => `${withoutEnding(file)} ${scale}`);
      yield [`${isWhole ? 'latents' : 'velocity'}, ${labels.join(' + ')}`, actual, name];
    }
  }
}

/** `…_lora_a08_b17` is adapter a at 0.8 and b at 1.7. A file belongs to the adapter whose letter it starts with. */
function choicesOf(name: string, files: readonly string[]): ScaledFile[][] {
  let choices: ScaledFile[][] = [[]];
  const [, adapters = ''] = name.split('_lora_');
  for (const [, letter, digits] of adapters.matchAll(/([a-z]+)(\d+)/g)) {
    const own = files.filter((file) => file.startsWith(`${letter}_`));
    choices = choices.flatMap((choice) =>
      own.map((file): ScaledFile[] => [...choice, [file, Number(digits) / 10]]),
    );
  }
  return choices;
}

/** A LoRA of another base must be refused with a sentence that names both shapes. */
export async function* wrongLora({ golden, architecture }: Wan): Results {
  for (const file of golden.loraFiles.filter((each) => each.startsWith('wrong'))) {
    const line = `${withoutEnding(file)} is refused`;
    const checkpoint = await openFile(golden.folder, `loras/${file}`);
    const parsing = parseLora(checkpoint, architecture, file);
    const error = await parsing.then(() => 'it was accepted', toKinoraError);
    const isRight = typeof error !== 'string' && error.code === 'LORA_WRONG_BASE';
    yield isRight ? [line, [0], [0]] : [line, String(error)];
  }
}

export async function* tinyDecoders(wan: Wan, [name = '']: readonly string[]): Results {
  const { folder, backend, tensors } = wan.golden;
  for (const variant of ['base', 'super']) {
    const path = `formats/tiny-decoder-${variant}`;
    if (!(await folder.exists(`${path}-golden.safetensors`))) continue;
    const checkpoint = await openFile(folder, `${path}.safetensors`);
    const reference = await openFile(folder, `${path}-golden.safetensors`);
    const decoder = await createTinyDecoder(backend, checkpoint, wan.frameSize);
    const frames = await wan.frames(decoder, await tensors.read(name));
    const actual = frames.flatMap((frame) => [...frame]); // [1, T, 3, H, W]
    yield [`tiny decoder, ${variant}`, actual, await reference.read('frames')];
  }
}

/** Files with one tensor of every type that public files use; beside each, `…-f32.safetensors` with the values. */
export async function* elementTypes({ golden: { folder } }: Wan): Results {
  for (const path of ['formats/element-types.safetensors', 'formats/ggml-types.gguf']) {
    if (!(await folder.exists(path))) continue;
    const file = await openTensorFile(await wholeFile(folder, path));
    const checkpoint = checkpointOf(path, locateTensors([file]));
    const values = await openFile(folder, path.replace(/\.\w+$/, '-f32.safetensors'));
    for (const tensor of checkpoint.names()) {
      const line = `${file.format} ${checkpoint.dtype(tensor)}, ${tensor}`;
      if (!values.has(tensor)) yield [line, 'the reference lacks it'];
      else yield [line, await checkpoint.read(tensor), await values.read(tensor)];
    }
  }
}

const publicFiles = {
  transformer: 'transformer-Q8_0.gguf',
  text_encoder: 'text-encoder-Q8_0.gguf',
  vae: 'vae-fp16-original-keys.safetensors',
} as const;

/**
 * The model from files as people host them, with their names: from prompt and image to latents and video, with plain
 * weights and with the 8-bit blocks just as the GGUF files have them.
 */
export async function* publicFormats({ golden, settings, config }: Wan): Results {
  const { folder } = golden;
  if (!(await folder.exists('formats/golden-q8.safetensors'))) return;
  const expected = await openFile(folder, 'formats/golden-q8.safetensors');
  const hosted = new Wan(golden, settings, config, async (component) => {
    const name = component as keyof typeof publicFiles;
    const file = await openTensorFile(await wholeFile(folder, `formats/${publicFiles[name]}`));
    return openComponent(name, [file], config);
  });
  for (const [precision, how] of [
    ['f32', 'read as f32'],
    ['int8', 'in its own blocks'],
  ] as const) {
    const actual = await hosted.whole({ precision });
    yield [`latents, Q8_0 ${how}`, actual, await expected.read('final_latents')];
    yield [`video, Q8_0 ${how}`, await hosted.video(actual), await expected.read('video')];
  }
}
