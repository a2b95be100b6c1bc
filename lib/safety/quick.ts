import { z } from 'zod';
import { KinoraError, quickChecker, sha256 as sha256Of } from '../contract';
import { type DeviceTensor, Scope } from '../gpu';
import { squeeze } from '../pipeline/vision/squares';
import type { ModelFolder } from '../weights';
import { checkerOf, type SafetyChecker } from './checker';
import type { Classifier } from './classifier';
import { foldedWeights, imageSize, mobileNetGraph, softmax } from './mobilenet';

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
  const read = (name: string) => {
    const values = tensors.get(name);
    if (!values) throw new TypeError(`The quick checker has no tensor ${name}.`);
    return values;
  };
  return {
    threshold: quickChecker.threshold,
    cut: (image) => squeeze(image, imageSize),
    async open(backend, signal, traced = false) {
      signal.throwIfAborted();
      const scope = new Scope(backend);
      try {
        const graph = mobileNetGraph(traced);
        const inputs: Record<string, DeviceTensor> = {};
        for (const [name, { dims, data }] of foldedWeights(read)) {
          inputs[name] = scope.float32(dims, 'weights', data);
        }
        const pixels = scope.float32([1, 3, imageSize, imageSize], 'activations');
        const outputs = new Map(
          graph.outputs.map(({ name, dims }) => {
            return [name, scope.float32(dims as number[], 'activations')];
          }),
        );
        return {
          async logits(values, onHidden) {
            backend.write(pixels, Float32Array.from(values));
            await backend.run(graph, { ...inputs, pixels }, Object.fromEntries(outputs));
            let logits = new Float32Array();
            for (const [name, tensor] of outputs) {
              const read = await backend.read(tensor);
              if (name === 'logits') logits = read;
              else onHidden?.(name, read);
            }
            return logits;
          },
          dispose: () => scope.dispose(),
        };
      } catch (error) {
        scope.dispose();
        throw error;
      }
    },
    unsafe(logits) {
      const [, hentai = 0, , porn = 0, sexy = 0] = softmax(logits);
      return Math.min(1, porn + hentai + sexy / 2); // swimwear is "Sexy" too
    },
  };
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
