import { z } from 'zod';
import { KinoraError, quickChecker, sha256 as sha256Of } from '../contract';
import { SimdImages } from '../gpu';
import type { ModelFolder } from '../weights';
import { checkerOf, type SafetyChecker } from './checker';
import type { Classifier } from './classifier';
import { foldedWeights, imageSize, mobileNetGraph, mobileNetHead, softmax } from './mobilenet';
import { squeeze } from './preprocess';

/** A tensor's name and shape, and the range that its bytes stand for. */
const tensorsSchema = z.array(
  z.object({ name: z.string(), shape: z.array(z.int()), min: z.number(), scale: z.number() }),
);

/**
 * Opens the quick checker.
 *
 * @param folder the one of its two files
 * @param soft whether the videos that it judges are those of the bundled model
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`, `FILE_UNREADABLE`
 */
export async function openQuickChecker(folder: ModelFolder, soft = false): Promise<SafetyChecker> {
  const { model, weights, softThreshold } = quickChecker;
  const checker = checkerOf(await openQuickClassifier(folder), { model, sha256: weights.sha256 });
  return { ...checker, frameThreshold: soft ? softThreshold : undefined };
}

/** @throws KinoraError as {@link openQuickChecker} */
export async function openQuickClassifier(folder: ModelFolder): Promise<Classifier> {
  const bytes = await readWhole(folder, quickChecker.weights);
  const text = new TextDecoder().decode(await readWhole(folder, quickChecker.tensors));
  const tensors = new Map<string, Float32Array>();
  let start = 0;
  for (const { name, shape, min, scale } of tensorsSchema.parse(JSON.parse(text))) {
    const end = start + shape.reduce((product, size) => product * size, 1);
    // A plain loop: Float32Array.from with a function takes 0.1 s for these 2.6 million values.
    const values = new Float32Array(bytes.subarray(start, end));
    for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) * scale + min;
    tensors.set(name, values);
    start = end;
  }
  const read = (name: string) => tensors.get(name) ?? missing(name);
  return {
    threshold: quickChecker.threshold,
    cut: (image) => squeeze(image, imageSize),
    batchSize: 1,
    /** On the CPU, also beside a GPU: a square takes less time there than a GPU takes to compile the network. */
    async start({ simd }, _, signal, traced) {
      const graph = mobileNetGraph(traced);
      const take = simd?.take ?? (() => () => undefined);
      const images = SimdImages.open(take, [graph], new Map(foldedWeights(read)), signal);
      if (!images) throw new TypeError('No kernels compute the quick checker.');
      const results = new Map<string, Float32Array>();
      return {
        outputs: [...graph.outputs.keys(), 'logits'],
        async compute(pixels) {
          const names = graph.outputs.keys();
          for await (const result of images.frames(graph, { pixels })) {
            results.set(names.next().value ?? '', result);
          }
          const head = mobileNetHead(results.get('out_relu') ?? new Float32Array(0), read);
          for (const [name, values] of Object.entries(head)) results.set(name, values);
        },
        read: async (name) => results.get(name) ?? missing(name),
        dispose: () => images.dispose(),
      };
    },
    input: (values) => channelsLast(values),
    unsafe(logits) {
      const [, hentai = 0, , porn = 0, sexy = 0] = softmax(logits);
      return Math.min(1, porn + hentai + sexy / 2); // swimwear is "Sexy" too
    },
  };
}

function missing(name: string): never {
  throw new TypeError(`The quick checker has no ${name}.`);
}

/** Planar RGB [3, H, W] as [H, W, 3]. */
export function channelsLast(planar: ArrayLike<number>): Float32Array {
  const pixels = planar.length / 3;
  return Float32Array.from(planar, (_, i) => planar[(i % 3) * pixels + Math.floor(i / 3)] ?? 0);
}

/** A file of the quick checker, which is the one that was tested. */
async function readWhole(
  folder: ModelFolder,
  { file, sha256 }: { readonly file: string; readonly sha256: string },
): Promise<Uint8Array> {
  const source = await folder.open(file);
  const bytes = Uint8Array.from(await source.read(0, source.size));
  if ((await sha256Of(bytes)) === sha256) return bytes;
  throw new KinoraError('MODEL_FILE_INVALID', `${file} is not the quick checker's file.`, {
    remedy: 'Run `npm run prepare:assets`, or reload the page.',
  });
}
