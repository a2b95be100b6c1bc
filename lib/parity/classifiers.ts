/** What the stages of the image classifiers compute: a vision transformer in two layouts, and the quick checker. */
import { z } from 'zod';
import { at, KinoraError } from '../contract';
import { memoised } from '../graph';
import { openNetwork } from '../safety/checker';
import type { Classifier } from '../safety/classifier';
import { softmax } from '../safety/mobilenet';
import { cutSquares, layOutSquares, normalise, rgbaBytes } from '../safety/preprocess';
import { channelsLast, openQuickClassifier } from '../safety/quick';
import { patchify, vitClassifier } from '../safety/vit';
import { subfolder } from '../weights';
import { type Golden, type Results, readFields, readPng } from './golden';

/** The network for a batch of squares, with its hidden states. */
async function start({ backend, own }: Golden, classifier: Classifier, batch: number) {
  const { signal } = new AbortController();
  return own(await classifier.start(backend, batch, signal, true));
}

/** Layouts of the vision transformer; the references' names of the squares that we score, and of those with hidden states. */
const layouts = [
  ['timm', 'timm.cover', 'timm.center'],
  ['transformers', 'transformers', 'transformers'],
] as const;

const layoutSchema = z.looseObject({ nsfw: z.int() });
const pair = z.tuple([z.int(), z.int()]);
const imageSchema = z.looseObject({ size: pair, resized: pair, squares: z.array(pair) });
const vitSchema = z.looseObject({
  timm: layoutSchema,
  transformers: layoutSchema,
  images: z.record(z.string(), imageSchema),
});

export async function openVit(golden: Golden) {
  const network = (layout: string) => openNetwork(subfolder(golden.folder, layout));
  return { golden, network: memoised(network), ...(await readFields(golden, vitSchema)) };
}
type Vit = Awaited<ReturnType<typeof openVit>>;

/** Which output means unsafe; of each image, its size after scaling, where the squares start, and their pixels. */
export async function* vitPixels({ golden, network, images, ...facts }: Vit): Results {
  for (const [layout, scored] of layouts) {
    const { preprocessing, unsafeIndex } = (await network(layout)).config;
    yield [`${layout} label`, [unsafeIndex + 1], [facts[layout].nsfw + 1]];
    for (const [name, { size, resized, squares }] of Object.entries(images)) {
      const image = await readPng(golden.folder, `images/${name}.png`);
      const { width, height, offsets } = layOutSquares(image, preprocessing);
      const laidOut = [image.width, image.height, width, height, ...offsets.flat()];
      if (layout === 'timm') {
        yield [`${name}, squares`, laidOut, [...size, ...resized, ...squares.flat()]];
      }
      const { values } = cutSquares(rgbaBytes(image), preprocessing);
      const reference = `${name}.${scored}.pixels`;
      yield [reference, normalise(values, preprocessing), reference];
    }
  }
}

/** The network on the reference's pixels: hidden states, class token, logits and probabilities. */
export async function* vitLayers({ golden, network, images }: Vit): Results {
  const { tensors } = golden;
  for (const [layout, scored, traced] of layouts) {
    const opened = await network(layout);
    const classifier = vitClassifier(opened);
    const names = Object.keys(images).flatMap((name) => [`${name}.${traced}`, `${name}.${scored}`]);
    for (const prefix of new Set(names)) {
      const [batch = 0] = tensors.shape(`${prefix}.pixels`);
      const run = await start(golden, classifier, batch);
      await run.compute(patchify(await tensors.read(`${prefix}.pixels`), opened.vit));
      for (const output of run.outputs) {
        yield [`${prefix}.${output}`, await run.read(output), `${prefix}.${output}`];
      }
      const logits = await run.read('logits');
      const all = await tensors.read(`${prefix}.probabilities`);
      const own = Array.from({ length: batch }, (_, i) => i);
      const actual = own.map((i) => classifier.unsafe(logits.subarray(2 * i, 2 * i + 2)));
      const expected = own.map((i) => at(all, 2 * i + opened.config.unsafeIndex));
      yield [`${prefix}.probabilities`, actual, expected];
    }
  }
}

const quickSchema = z.looseObject({
  /** By the file in `images/`: the number before its tensors' names. */
  pictures: z.record(z.string(), z.looseObject({ index: z.int() })),
});

export async function openQuick(golden: Golden) {
  if (!golden.quickChecker) throw new KinoraError('MODEL_FILE_MISSING', 'There are no weights.');
  const classifier = await openQuickClassifier(golden.quickChecker);
  return { golden, classifier, ...(await readFields(golden, quickSchema)) };
}
type Quick = Awaited<ReturnType<typeof openQuick>>;

/** From each picture itself: pixels, layers and probabilities. */
export async function* quickLayers(quick: Quick, names: readonly string[]): Results {
  const { golden, classifier, pictures } = quick;
  const run = await start(golden, classifier, 1);
  for (const [file, { index }] of Object.entries(pictures)) {
    const image = await readPng(golden.folder, `images/${file}`);
    const { values: pixels } = classifier.cut(rgbaBytes(image));
    await run.compute(classifier.input(pixels));
    const probabilities = softmax(await run.read('logits'));
    const made: Readonly<Record<string, ArrayLike<number>>> = {
      pixels: channelsLast(pixels),
      probabilities,
    };
    for (const name of names.filter((each) => each.startsWith(`${index}.`))) {
      const output = name.slice(name.indexOf('.') + 1);
      yield [name, made[output] ?? (await run.read(output)), name];
    }
  }
}
