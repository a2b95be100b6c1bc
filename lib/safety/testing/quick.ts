import type { Backend } from '../../gpu';
import { compare, type ParityLine } from '../../pipeline/parity';
import { blobFile, type ModelFolder, openSafetensors } from '../../weights';
import { ClassifierRun } from '../classifier';
import { softmax } from '../mobilenet';
import { decodePng } from '../parity/png';
import { rgbaBytes } from '../preprocess';
import { openQuickClassifier } from '../quick';

/** Relative error that a tensor may have, and absolute error of a probability. */
const tolerance = 4e-6;
const probabilityTolerance = 1e-6;

/**
 * Compares the quick checker with what nsfwjs computes: pixels, hidden states, logits and probabilities of each
 * picture, from the picture itself.
 *
 * @param weights the folder of the checker's files
 * @param goldens `lib/safety/goldens/nsfwjs`
 * @param pictures those that are computed
 */
export async function quickParity(
  weights: ModelFolder,
  goldens: ModelFolder,
  backend: Backend,
  pictures: readonly string[] = ['0', '3', '4'],
): Promise<ParityLine[]> {
  const classifier = await openQuickClassifier(weights);
  const whole = async (path: string) => {
    const file = await goldens.open(path);
    return Uint8Array.from(await file.read(0, file.size));
  };
  const tensors = await openSafetensors(
    blobFile('golden.safetensors', new Blob([await whole('golden.safetensors')])),
  );
  const { signal } = new AbortController();
  const lines: ParityLine[] = [];
  const run = await ClassifierRun.start(classifier, backend, 1, signal, true);
  try {
    const names = [...tensors.names()];
    for (const index of pictures) {
      const image = await decodePng(await whole(`images/${index}.png`));
      const { values } = classifier.cut(rgbaBytes(image));
      await run.compute(classifier.input(values));
      for (const stage of names.filter((name) => name.startsWith(`${index}.`))) {
        const name = stage.slice(stage.indexOf('.') + 1);
        const expected = await tensors.read(stage);
        if (name === 'probabilities') {
          const line = compare(stage, softmax(await run.read('logits')), expected, tolerance);
          lines.push({ ...line, ok: line.maxAbsolute <= probabilityTolerance });
          continue;
        }
        const actual = name === 'pixels' ? Float32Array.from(values) : await run.read(name);
        const channels = tensors.shape(stage).at(-1) ?? 1;
        lines.push(compare(stage, channelsLast(actual, channels), expected, tolerance));
      }
    }
  } finally {
    run.dispose();
    await backend.trim();
  }
  return lines;
}

/** [C, …] as [… , C]: the order of the references. */
function channelsLast(values: Float32Array, channels: number): Float32Array {
  const pixels = values.length / channels;
  return values.map((_, i) => values[(i % channels) * pixels + Math.floor(i / channels)] as number);
}
