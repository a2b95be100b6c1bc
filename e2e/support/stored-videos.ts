import type { Page } from 'playwright';
import type { Prediction } from '../../lib/contract/prediction';

/**
 * Stores predictions in the page's browser, which has opened the studio: their rows, and the same video in the
 * place of each finished one. The page is not the studio afterwards.
 *
 * @param posters also stores a poster of each, in different colours
 */
export async function storePredictions(
  page: Page,
  predictions: readonly Prediction[],
  video: Uint8Array,
  posters = false,
): Promise<void> {
  const base64 = Buffer.from(video).toString('base64');
  await page.locator('.stage:not(.loading)').waitFor();
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
      const pictures: object[] = [];
      for (const [index, row] of predictions.entries()) {
        if (row.status !== 'completed') continue;
        const file = await folder.getFileHandle(row.result.videoFile, { create: true });
        const writable = await file.createWritable();
        await writable.write(bytes);
        await writable.close();
        if (!posters) continue;
        const fill = context.createLinearGradient(0, 0, 480, 270);
        fill.addColorStop(0, `hsl(${index * 37} 60% 30%)`);
        fill.addColorStop(1, `hsl(${index * 37 + 60} 70% 70%)`);
        context.fillStyle = fill;
        context.fillRect(0, 0, 480, 270);
        const picture = await canvas.convertToBlob({ type: 'image/jpeg', quality: 0.8 });
        pictures.push({ predictionId: row.id, picture });
      }
      const opening = indexedDB.open('kinora');
      await new Promise((resolve) => {
        opening.onsuccess = resolve;
      });
      const transaction = opening.result.transaction(['predictions', 'posters'], 'readwrite');
      for (const row of predictions) transaction.objectStore('predictions').put(row);
      for (const row of pictures) transaction.objectStore('posters').put(row);
      await new Promise((resolve) => {
        transaction.oncomplete = resolve;
      });
      opening.result.close();
    },
    { predictions, base64, posters },
  );
}
