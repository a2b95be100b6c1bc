import { expect, test } from 'vitest';
import { quickChecker, type Safety, safetySchema } from '../../lib/contract';
import { entry, part, storedPart } from '../models/testing/entries';
import { findChecker } from './checker';
import { blurReason, previewBlurReason, verdictText } from './safety-text';

const model = 'Marqo/nsfw-image-detection-384';
const { model: quick } = quickChecker;
const safety = (changes: Partial<Safety>): Safety => safetySchema.parse({ ...changes });

test.each<[Partial<Safety> & Pick<Safety, 'status'>, string, string | null]>([
  [
    { status: 'clear', score: 0.499, frames: [0.4, 0.5], model },
    `Clear by ${model}, score 0.49 (0.5 flags), 2 frames looked at.`,
    null,
  ],
  [
    { status: 'clear', score: 0.055, threshold: 0.6, frames: [0.1, 0.01], model: quick },
    `Quick check: clear by ${quick}, score 0.05 (0.6 flags), 2 frames looked at.`,
    null,
  ],
  [
    { status: 'flagged', score: 0.7, threshold: 0.6, model: quick },
    `Quick check: flagged by ${quick}`,
    'often wrong',
  ],
  [{ status: 'clear', score: 0.1, input: 0.7, model }, 'An input image was flagged too', null],
  [{ status: 'flagged', score: 0.93, model }, `Flagged by ${model}, score 0.93`, 'nudity or sex'],
  [{ status: 'off' }, 'switched off', null],
  [{ status: 'unverified', reason: 'missing' }, 'not in this browser', 'not checked'],
  [{ status: 'unverified', reason: 'failed' }, 'the safety check failed', 'failed'],
])('%j: its line, and whether it is blurred', (changes, line, reason) => {
  expect(verdictText(safety(changes))).toContain(line);
  const blur = blurReason(safety(changes));
  if (reason === null) expect(blur).toBeNull();
  else expect(blur).toContain(reason);
});

test('a record of an earlier version is no verdict, and is not blurred', () => {
  expect(verdictText(undefined)).toMatch(/^Not checked/);
  expect(blurReason(undefined)).toBeNull();
});

test('the preview is blurred where the start image is flagged or its check failed', () => {
  expect(previewBlurReason(null)).toBeNull();
  expect(previewBlurReason({ score: 0.1, flagged: false })).toBeNull();
  expect(previewBlurReason({ score: 0.9, flagged: true })).toContain('nudity or sex');
  expect(previewBlurReason({ score: null, flagged: false })).toContain('failed');
});

test('the checker is downloaded for the model that lacks nothing else, else for the bundled one', () => {
  const { manifest } = entry();
  const tiny = entry({ manifest: { ...manifest, id: 'tiny' }, origin: 'bundled', ready: true });
  const parts = [part('vae', { status: 'complete' }), part('safety_checker')];
  const whole = entry({ ready: true, parts });
  expect(findChecker([tiny, whole], 'wan')).toEqual({ status: 'absent', target: whole });
  expect(findChecker([tiny, entry()], 'wan')).toEqual({ status: 'absent', target: tiny });
  const stored = [storedPart({ component: 'safety_checker' })];
  expect(findChecker([tiny, entry({ stored })], 'tiny').status).toBe('ready');
});
