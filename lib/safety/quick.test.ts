import { afterAll, describe, expect, test } from 'vitest';
import { quickChecker } from '../contract';
import { nodeBackend } from '../models/wan/testing/model';
import { diskFolder, patchedFolder, publicModels } from '../weights/testing/files';
import { SafetyCheck } from './check';
import { openQuickChecker, openQuickClassifier } from './quick';
import { goldenImage } from './testing/golden';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const files = diskFolder(`${publicModels}../nsfwjs`);
const { signal } = new AbortController();

test('porn and hentai count whole, sexy half', { tags: ['full'] }, async () => {
  const { unsafe } = await openQuickClassifier(files);
  // Drawing, Hentai, Neutral, Porn, Sexy.
  const score = (...shares: number[]) => unsafe(Float32Array.from(shares, Math.log));
  expect(score(0.1, 0.2, 0.3, 0.15, 0.25)).toBeCloseTo(0.475, 6);
  expect(score(0.5, 1e-9, 0.5, 1e-9, 1e-9)).toBeCloseTo(0, 6);
  expect(unsafe(Float32Array.of(-200, 0, -200, 300, -200))).toBe(1);
});

test('the record names it, its weights and its own threshold', { tags: ['full'] }, async () => {
  const check = new SafetyCheck(await openQuickChecker(files));
  const image = await goldenImage('wide');
  async function* cpuOnly() {
    yield backend;
  }
  const input = await check.scoreInput([check.checker.squares(image)], cpuOnly, signal);
  check.take({ data: new Float32Array(3 * 16 * 9), width: 16, height: 9 }, 0);
  const { model, threshold, weights } = quickChecker;
  const safety = await check.verdict(cpuOnly, signal);
  expect(safety).toMatchObject({ model, threshold: 0.6, sha256: weights.sha256, input });
  expect(safety.frames).toEqual([safety.score]);
  expect(safety.status).toBe((safety.score ?? 1) >= threshold ? 'flagged' : 'clear');
  expect(backend.counters().liveBytes).toBe(0);
});

describe('a file that is not the one of the package is refused', () => {
  test.each([quickChecker.weights.file, quickChecker.tensors.file])('%s', async (file) => {
    const source = await files.open(file);
    const bytes = Uint8Array.from(await source.read(0, source.size));
    bytes[1000] = (bytes[1000] ?? 0) ^ 1;
    const patched = patchedFolder(files, { [file]: bytes });
    await expect(openQuickChecker(patched)).rejects.toMatchObject({
      code: 'MODEL_FILE_INVALID',
      message: expect.stringContaining(file),
    });
  });
});
