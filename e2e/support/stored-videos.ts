import type { Page } from 'playwright';
import { type GenerationResult, type Prediction, parseParameters } from '../../lib/contract';
import { newPrediction, resultOf } from '../../lib/predictions/testing/prediction';
import { untilRead } from './database';

/** The n-th prediction of a list, the first of which is the newest; its seed is n. */
export function storedRow(
  n: number,
  parameters: object,
  fields: Partial<Prediction> = {},
): Prediction {
  return newPrediction({
    id: n.toString(16).padStart(32, '0'),
    parameters: parseParameters({ seed: n, ...parameters }),
    createdAt: new Date(Date.UTC(2026, 0, 1) - n * 60_000).toISOString(),
    ...fields,
  });
}

/** The same, finished. */
export function finishedRow(
  n: number,
  parameters: object,
  more: Partial<GenerationResult> = {},
): Prediction {
  const { id, createdAt: at, parameters: asked } = storedRow(n, parameters);
  const result = { ...resultOf(id), seed: asked.seed, ...more };
  return storedRow(n, parameters, { status: 'completed', completedAt: at, result });
}

/** Names of the files in a folder of the page's private file system, which is made where it is missing. */
export async function storedFiles(page: Page, folder: string): Promise<string[]> {
  return await page.evaluate(async (name) => {
    const root = await navigator.storage.getDirectory();
    const files = await root.getDirectoryHandle(name, { create: true });
    const names: string[] = [];
    for await (const file of files.keys()) names.push(file);
    return names;
  }, folder);
}

/**
 * Stores predictions in the page's browser, which has opened the studio: their rows, and the same video in the
 * place of each finished one. The page is not the studio afterwards.
 *
 * @param posters also stores a poster of each, in 36 colours
 */
export async function storePredictions(
  page: Page,
  predictions: readonly Prediction[],
  video: Uint8Array,
  posters = false,
): Promise<void> {
  const base64 = Buffer.from(video).toString('base64');
  await untilRead(page);
  // The studio deletes videos without a row when it starts.
  await page.goto('/terms');
  await page.evaluate(
    async ({ predictions, base64, posters }) => {
      const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('videos', { create: true });
      const canvas = new OffscreenCanvas(480, 270);
      const context = canvas.getContext('2d');
      if (!context) throw new Error('no canvas');
      const finished = predictions.filter((row) => row.status === 'completed');
      // Rows may share a file.
      for (const name of new Set(finished.map((row) => row.result.videoFile))) {
        const file = await folder.getFileHandle(name, { create: true });
        const writable = await file.createWritable();
        await writable.write(bytes);
        await writable.close();
      }
      const colours: Blob[] = [];
      for (let hue = 0; posters && hue < 360; hue += 10) {
        const fill = context.createLinearGradient(0, 0, 480, 270);
        fill.addColorStop(0, `hsl(${hue} 60% 30%)`);
        fill.addColorStop(1, `hsl(${hue + 60} 70% 70%)`);
        context.fillStyle = fill;
        context.fillRect(0, 0, 480, 270);
        colours.push(await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.8 }));
      }
      const pictures = finished.map(({ id: predictionId }, index) => ({
        predictionId,
        picture: colours[index % colours.length],
      }));
      const opening = indexedDB.open('kinora');
      await new Promise((resolve) => {
        opening.onsuccess = resolve;
      });
      const transaction = opening.result.transaction(['predictions', 'posters'], 'readwrite');
      for (const row of predictions) transaction.objectStore('predictions').put(row);
      for (const row of posters ? pictures : []) transaction.objectStore('posters').put(row);
      await new Promise((resolve) => {
        transaction.oncomplete = resolve;
      });
      opening.result.close();
    },
    { predictions, base64, posters },
  );
}
