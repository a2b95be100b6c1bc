import { expect, test } from 'vitest';
import { type ErrorCode, KinoraError } from '../contract';
import { ApiError } from '../contract/v3';
import { describeFailure, Fitness, inWords } from './failures';

/** Whether a worker pauses itself after each of these ends. */
function judge(...codes: (ErrorCode | null)[]): boolean[] {
  const fitness = new Fitness();
  return codes.map((code) => fitness.judge(code === null ? null : new KinoraError(code)));
}

test('bad requests and an unreachable hub never pause a worker, however many', () => {
  const blameless: ErrorCode[] = [
    'LORA_MISSING',
    'IMAGE_UNREADABLE',
    'HUB_UNREACHABLE',
    'HUB_BUSY',
  ];
  for (const code of blameless) expect(judge(...Array(9).fill(code))).not.toContain(true);
  expect(judge(...Array(9).fill('INTERRUPTED'))).not.toContain(true);
});

test('three suspect failures in a row do; a success, or a request at fault, ends the row', () => {
  expect(judge('DEVICE_LOST', 'OUT_OF_MEMORY', 'INTERNAL')).toEqual([false, false, true]);
  expect(judge('DEVICE_LOST', 'INTERNAL', null, 'INTERNAL', 'INTERNAL')).not.toContain(true);
  expect(judge('INTERNAL', 'INTERNAL', 'LORA_INVALID', 'INTERNAL')).not.toContain(true);
  // It says nothing about the worker, so it ends no row.
  expect(judge('INTERNAL', 'INTERNAL', 'HUB_BUSY', 'INTERNAL')).toEqual([
    false,
    false,
    false,
    true,
  ]);
  expect(judge('MODEL_NOT_INSTALLED')).toEqual([true]);
});

test('what an adapter may cause by its size says nothing of a worker; its own faults do', () => {
  const fitness = new Fitness();
  const failed = (code: ErrorCode) => fitness.judge(new KinoraError(code), true);
  for (let n = 0; n < 9; n++) expect(failed(n % 2 ? 'OUT_OF_MEMORY' : 'INTERNAL')).toBe(false);
  expect(
    ['DEVICE_LOST', 'DEVICE_LOST', 'DEVICE_LOST'].map((code) => failed(code as ErrorCode)),
  ).toEqual([false, false, true]);
  expect(failed('MODEL_NOT_INSTALLED')).toBe(true);
});

test('a video that the server does not take is not made again', () => {
  const large = describeFailure(new ApiError('TOO_LARGE'));
  expect(large).toMatchObject({ code: 'PARAMETER_INVALID', retryable: false });
  const rejected = new ApiError('OUTPUT_REJECTED', 'It has 80 frames and not 121.');
  expect(describeFailure(rejected)).toEqual({
    code: 'ENCODER_FAILED',
    message: 'The server rejects the video: It has 80 frames and not 121.',
    retryable: false,
  });
  // A worker whose videos are all rejected is unfit, as with any failure that may be its own.
  const fitness = new Fitness();
  const judged = [1, 2, 3].map(() => fitness.judge(inWords(rejected)));
  expect(judged).toEqual([false, false, true]);
});

test('an error of the relay does not count against the worker', () => {
  expect(inWords(new ApiError('STORAGE_DOWN')).code).toBe('INTERRUPTED');
  expect(describeFailure(new ApiError('STORAGE_DOWN')).retryable).toBe(true);
});
