import { compare, failure, type ParityLine } from '../../../pipeline/parity';
import { checkpointOf, locateTensors, openTensorFile } from '../../../weights';
import { openFile, readFile } from '../../wan/parity';
import { openComponent, type WeightComponent } from '../naming';
import type { ParityContext } from './golden';
import {
  decodeVideo,
  encodeGoldenImage,
  encodeGoldenPrompts,
  loop,
  openTransformer,
} from './pipeline';

/** Exact values differ from the reference by nothing but the rounding of f32, once. */
const roundingTolerance = 2 ** -23;

/** Files with one tensor of every type; beside each, `…-f32.safetensors` with the values. */
const typeFiles = ['element-types.safetensors', 'ggml-types.gguf'] as const;

/** Every type of element that public files use, against its values. */
export async function* elementTypes({ golden }: ParityContext): AsyncGenerator<ParityLine> {
  for (const name of typeFiles) {
    const path = `formats/${name}`;
    if (!(await golden.folder.exists(path))) continue;
    const file = await openTensorFile(await readFile(golden.folder, path));
    const checkpoint = checkpointOf(name, locateTensors([file]));
    const values = await openFile(golden.folder, path.replace(/\.\w+$/, '-f32.safetensors'));
    for (const tensor of checkpoint.names()) {
      const stage = `${file.format} ${checkpoint.dtype(tensor)}, ${tensor}`;
      if (!values.has(tensor)) yield failure(stage, roundingTolerance, 'the reference lacks it');
      else {
        const [actual, expected] = [await checkpoint.read(tensor), await values.read(tensor)];
        yield compare(stage, actual, expected, roundingTolerance);
      }
    }
  }
}

const files = {
  transformer: 'formats/transformer-Q8_0.gguf',
  textEncoder: 'formats/text-encoder-Q8_0.gguf',
  vae: 'formats/vae-fp16-original-keys.safetensors',
} as const;

/**
 * The model from files as people host them, with their names: from prompt and image to latents and
 * video, with plain weights and with the 8-bit blocks just as the GGUF files have them.
 */
export async function* publicFormats(context: ParityContext): AsyncGenerator<ParityLine> {
  const { golden, loopTolerance, formatsVideoTolerance } = context;
  const reference = 'formats/golden-q8.safetensors';
  if (!(await golden.folder.exists(reference))) return;
  const expected = await openFile(golden.folder, reference);

  const open = (component: WeightComponent, path: string) => async () =>
    openComponent(
      component,
      [await openTensorFile(await readFile(golden.folder, path))],
      golden.config,
    );
  const components = {
    transformer: open('transformer', files.transformer),
    textEncoder: open('text_encoder', files.textEncoder),
    vae: open('vae', files.vae),
  };
  const ours = { ...context, golden: { ...golden, components } };
  const image = await encodeGoldenImage(ours);
  for (const [precision, how] of [
    ['f32', 'read as f32'],
    ['int8', 'in its own blocks'],
  ] as const) {
    const [prompt, negativePrompt] = await encodeGoldenPrompts(ours, precision);
    const model = await openTransformer(ours, precision);
    let latents: Float32Array;
    try {
      const inputs = { image, prompt, negativePrompt };
      latents = await loop(ours, model, inputs, golden.settings.guidance_scale);
    } finally {
      model.dispose();
    }
    const golds = await expected.read('final_latents');
    yield compare(`latents, Q8_0 ${how}`, latents, golds, loopTolerance);
    const frames = await decodeVideo(ours, latents);
    yield compare(
      `video, Q8_0 ${how}`,
      frames,
      await expected.read('video'),
      formatsVideoTolerance,
    );
  }
}
