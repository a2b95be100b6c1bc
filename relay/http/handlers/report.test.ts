import { expect, it } from 'vitest';
import {
  promptOptimizationSchema,
  quickChecker,
  type Safety,
  safetySchema,
} from '../../../lib/contract';
import { clearSafety, testCaller, testJob } from '../../testing/jobs';
import { checkReport } from './worker';

const flagged: Safety = {
  ...clearSafety,
  status: 'flagged',
  score: 0.5,
  frames: [0.2, 0.8],
};
const off = safetySchema.parse({ status: 'off' });
const failed = safetySchema.parse({ status: 'unverified', reason: 'failed' });
const missing = safetySchema.parse({ status: 'unverified', reason: 'missing' });
const { model: quick, threshold } = quickChecker;
const clearByQuick: Safety = { ...flagged, status: 'clear', model: quick, threshold };
const seed = 7;
const told = promptOptimizationSchema.parse({
  status: 'used',
  original: 'A boat.',
  text: 'A boat drifts past.',
});

const jobOf = (checker: boolean, optimizer: boolean) => {
  const { input } = testJob(testCaller('ada'));
  return {
    seed,
    input: { ...input, enable_safety_checker: checker, enable_prompt_optimizer: optimizer },
  };
};

it.each([
  ['clear', true, clearSafety],
  ['flagged from the threshold on', true, flagged],
  ['clear below the threshold of the quick checker', true, clearByQuick],
  ['failed', true, failed],
  ['not asked for', false, off],
])('a report that fits its job is taken: %s', (_, asked, safety) => {
  const report = { safety, prompt_optimization: null };
  expect(checkReport(jobOf(asked, false), { seed, ...report })).toEqual(report);
});

it.each([
  ['off although asked for', true, off],
  ['without a checker', true, missing],
  ['no reason', true, { ...failed, reason: null }],
  ['clear without a checker', true, { ...clearSafety, model: null }],
  ['flagged without its SHA-256', true, { ...flagged, sha256: null }],
  ['clear without a score', true, { ...clearSafety, score: null }],
  ['clear without frames', true, { ...clearSafety, frames: [] }],
  ['clear with a high score', true, { ...clearSafety, score: 0.5 }],
  ['clear with a score that the quick checker flags', true, { ...clearByQuick, score: 0.6 }],
  ['flagged with a low score', true, { ...flagged, score: 0.49 }],
  ['a verdict that was not asked for', false, clearSafety],
])('a report that contradicts its job or itself is refused: %s', (_, asked, safety) => {
  const report = { seed, safety, prompt_optimization: null };
  expect(() => checkReport(jobOf(asked, false), report)).toThrow(
    expect.objectContaining({
      code: 'INVALID_PARAMETER',
      details: [expect.objectContaining({ field: 'safety.status' })],
    }),
  );
});

it('a check that was not asked for and that did not run is off', () => {
  const report = { seed, safety: failed, prompt_optimization: null };
  expect(checkReport(jobOf(false, false), report).safety).toEqual(off);
});

it('a prompt is reported where the job asks for it, with the prompt of the job', () => {
  const kept = { safety: clearSafety, prompt_optimization: told };
  const report = { seed, ...kept };
  expect(checkReport(jobOf(true, true), report)).toEqual(kept);
  expect(
    checkReport(jobOf(true, true), { ...report, prompt_optimization: null }).prompt_optimization,
  ).toMatchObject({ status: 'unavailable', original: 'A boat.', text: 'A boat.', model: null });
  expect(() => checkReport(jobOf(true, false), report)).toThrow('contradicts');
  const other = { ...report, prompt_optimization: { ...told, original: 'A train.' } };
  expect(() => checkReport(jobOf(true, true), other)).toThrow('contradicts');
});

it('a video with another seed than that of the job is refused', () => {
  const report = { seed: 8, safety: clearSafety, prompt_optimization: null };
  expect(() => checkReport(jobOf(true, false), report)).toThrow(
    expect.objectContaining({ details: [expect.objectContaining({ field: 'seed' })] }),
  );
});
