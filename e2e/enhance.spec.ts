import { openAsBlob } from 'node:fs';
import { parseParameters } from '../lib/contract/request';
import { newPrediction, resultOf } from '../lib/predictions/testing/prediction';
import { cutVideo } from '../lib/video/cut';
import { inspectVideo } from '../lib/video/inspect';
import { createVideoMetadata } from '../lib/video/metadata';
import { expect, test } from './support/fixtures';
import { storePredictions } from './support/stored-videos';

const id = 'f'.repeat(32);

test('a finished video is upscaled: a new one, which says what it is made of, and the old one stays', async ({
  studio,
  page,
}) => {
  const clip = await openAsBlob('public/samples/moves/pan-left.mp4');
  const { width, height, frames, frameRate } = await inspectVideo(clip);
  const at = '2026-01-01T00:00:00.000Z';
  const result = { ...resultOf(id), width, height, frames, frameRate };
  const parameters = parseParameters({ prompt: 'The camera pans to the left', seed: 5 });
  const row = newPrediction({
    id,
    parameters,
    result,
    status: 'completed',
    createdAt: at,
    startedAt: at,
    completedAt: at,
  });
  const metadata = createVideoMetadata(row);
  const { video } = await cutVideo([{ file: clip, from: 0, to: frames }], { metadata });
  await storePredictions(page, [row], new Uint8Array(await video.arrayBuffer()));
  await studio.open();
  await studio.history.getByRole('button', { name: 'The camera pans to the left' }).click();
  await studio.showMore();
  await studio.result.getByRole('button', { name: 'Upscale ×2' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText(`${2 * width}×${2 * height} pixels`);
  await dialog.getByRole('button', { name: 'Make it' }).click();
  await expect(dialog).toBeHidden({ timeout: 120_000 });

  await expect(studio.result).toContainText(`${2 * width}×${2 * height}`);
  await expect(studio.result).toContainText(`${frames} frames of another video`);
  await expect(studio.result.locator('video')).toHaveJSProperty('videoWidth', 2 * width);
  await studio.showMore();
  // Once is enough, and the other way round there are fewer frames to compute.
  await expect(studio.result.getByRole('button', { name: 'Upscale ×2' })).toBeHidden();
  await expect(studio.result.getByRole('button', { name: 'Make it smoother' })).toBeDisabled();
  await expect(studio.history.getByRole('listitem')).toHaveCount(2);
});
