import { z } from 'zod';
import { at } from '../../contract';
import type { Backend } from '../../gpu';
import {
  compare,
  type ParityLine,
  type ParityOptions,
  type ParityStage,
} from '../../pipeline/parity';
import {
  blobFile,
  type Checkpoint,
  type ModelFolder,
  openSafetensors,
  subfolder,
} from '../../weights';
import { openNetwork } from '../checker';
import { ClassifierRun } from '../classifier';
import { cutSquares, layOutSquares, normalise, type RgbaImage, rgbaBytes } from '../preprocess';
import { patchify, type VitNetwork, vitClassifier } from '../vit';
import { decodePng } from './png';

const pair = z.tuple([z.int(), z.int()]);
const layoutSchema = z.looseObject({ nsfw: z.union([z.literal(0), z.literal(1)]) });

/** `golden.json` of a classifier: two layouts of one network, and images. */
const goldenSchema = z.looseObject({
  timm: layoutSchema,
  transformers: layoutSchema,
  images: z.record(
    z.string(),
    z.looseObject({ size: pair, resized: pair, squares: z.array(pair), score: z.number() }),
  ),
});

const layouts = ['timm', 'transformers'] as const;

/** References of an image classifier in the layout of `lib/safety/goldens`. */
export const classifierParity = {
  recognises: (golden: unknown) => goldenSchema.safeParse(golden).success,
  parityStages: classifierStages,
};

/**
 * The comparisons that a folder with `timm/`, `transformers/` and `images/` allows. Tolerance 1e-5 from the
 * reference's own pixels; pixels have to be equal.
 *
 * @throws KinoraError when the folder has no references
 */
async function classifierStages(
  folder: ModelFolder,
  backend: Backend,
  { tolerance = 1e-5 }: ParityOptions,
): Promise<ParityStage[]> {
  const golden = goldenSchema.parse(await folder.json('golden.json'));
  const bytes = await readBytes(folder, 'golden.safetensors');
  const tensors = await openSafetensors(blobFile('golden.safetensors', new Blob([bytes])));
  return layouts.map((layout) => ({
    name: layout,
    tolerance,
    async *run() {
      const network = await openNetwork(subfolder(folder, layout));
      yield compare(
        `${layout} label`,
        [network.config.unsafeIndex + 1],
        [golden[layout].nsfw + 1],
        0,
      );
      for (const [name, facts] of Object.entries(golden.images)) {
        const image = await decodePng(await readBytes(folder, `images/${name}.png`));
        if (layout === 'timm') yield layoutLine(name, image, network, facts);
        yield* comparePixels(name, layout, image, network, tensors);
        yield* compareNetwork(name, layout, network, tensors, backend, tolerance);
      }
    },
  }));
}

/** Size after scaling, and where the squares start. */
function layoutLine(
  name: string,
  image: RgbaImage,
  { config }: VitNetwork,
  facts: z.output<typeof goldenSchema>['images'][string],
): ParityLine {
  const { width, height, offsets } = layOutSquares(image, config.preprocessing);
  const actual = [image.width, image.height, width, height, ...offsets.flat()];
  const expected = [...facts.size, ...facts.resized, ...facts.squares.flat()];
  return compare(`${name}, squares`, actual, expected, 0);
}

/** Names of the references for the squares that we score. */
const ownSquares = { timm: 'timm.cover', transformers: 'transformers' } as const;
/** Names of the references with hidden states. */
const traced = { timm: 'timm.center', transformers: 'transformers' } as const;

async function* comparePixels(
  name: string,
  layout: (typeof layouts)[number],
  image: RgbaImage,
  { config }: VitNetwork,
  tensors: Checkpoint,
): AsyncGenerator<ParityLine> {
  const reference = `${name}.${ownSquares[layout]}.pixels`;
  const { values } = cutSquares(rgbaBytes(image), config.preprocessing);
  const actual = normalise(values, config.preprocessing);
  yield compare(reference, actual, await tensors.read(reference), 0);
}

/** The network on the reference's pixels: hidden states, class token, logits and probabilities. */
async function* compareNetwork(
  name: string,
  layout: (typeof layouts)[number],
  network: VitNetwork,
  tensors: Checkpoint,
  backend: Backend,
  tolerance: number,
): AsyncGenerator<ParityLine> {
  for (const reference of new Set([traced[layout], ownSquares[layout]])) {
    const prefix = `${name}.${reference}`;
    const [batch = 0] = tensors.shape(`${prefix}.pixels`);
    const outputs = await trace(network, await tensors.read(`${prefix}.pixels`), batch, backend);
    for (const [output, actual] of outputs) {
      const stage = `${prefix}.${output}`;
      if (tensors.has(stage)) yield compare(stage, actual, await tensors.read(stage), tolerance);
    }
    const logits = outputs.get('logits') ?? new Float32Array();
    const { unsafe: probability } = vitClassifier(network);
    const unsafe = Array.from({ length: batch }, (_, i) =>
      probability(logits.subarray(2 * i, 2 * i + 2)),
    );
    const probabilities = await tensors.read(`${prefix}.probabilities`);
    const expected = unsafe.map((_, i) => at(probabilities, 2 * i + network.config.unsafeIndex));
    yield compare(`${prefix}.probabilities`, unsafe, expected, tolerance);
  }
}

/** All outputs of the network for pixels [batch, 3, size, size]. */
async function trace(
  network: VitNetwork,
  pixels: Float32Array,
  batch: number,
  backend: Backend,
): Promise<Map<string, Float32Array>> {
  const { signal } = new AbortController();
  const run = await ClassifierRun.start(vitClassifier(network), backend, batch, signal, true);
  try {
    await run.compute(patchify(pixels, network.vit));
    const results = new Map<string, Float32Array>();
    for (const name of Object.keys(run.outputs)) results.set(name, await run.read(name));
    return results;
  } finally {
    run.dispose();
  }
}

async function readBytes(folder: ModelFolder, path: string): Promise<Uint8Array<ArrayBuffer>> {
  const file = await folder.open(path);
  return (await file.read(0, file.size)) as Uint8Array<ArrayBuffer>;
}
