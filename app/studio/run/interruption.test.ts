import { expect, test } from 'vitest';
import { type ErrorCode, KinoraError } from '../../../lib/contract';
import { newPrediction } from '../../../lib/predictions/testing/prediction';
import { errorTexts, setTexts } from '../../texts';
import { zh } from '../../texts/zh';
import {
  finishText,
  type Interrupted,
  interruptionReason,
  interruptionTitle,
} from './interruption';

function interrupted(code: ErrorCode, step: number, clip = 0, clips = 1): Interrupted {
  return {
    ...newPrediction(),
    status: 'interrupted',
    interruptedAt: '2025-01-01T00:01:00.000Z',
    error: new KinoraError(code).toRecord(),
    checkpoint: { step, steps: 30, clip, clips },
  };
}

test('the title says where the run is, and whether it was paused', () => {
  expect(interruptionTitle(interrupted('INTERRUPTED', 17))).toBe('Interrupted at step 17 of 30');
  expect(interruptionTitle(interrupted('DEVICE_LOST', 30))).toBe('Interrupted while decoding');
  expect(interruptionTitle(interrupted('PAUSED', 4, 1, 2))).toBe(
    'Paused at step 4 of 30, clip 2 of 2',
  );
});

test('the remedy is to resume, not to run it again', () => {
  for (const code of [
    'INTERRUPTED',
    'INTERNAL',
    'DEVICE_LOST',
    'OUT_OF_MEMORY',
    'PAUSED',
  ] as const) {
    const { message, remedy } = interruptionReason(interrupted(code, 3));
    expect(message).toBe(new KinoraError(code).message);
    expect(remedy).toMatch(/resume/i);
  }
  expect(interruptionReason(interrupted('STORAGE_FULL', 3)).remedy).toMatch(/free disk space/);
});

test('the remedy is to resume in Chinese too, with the details of the error', () => {
  setTexts('zh', zh);
  try {
    const lost = interrupted('DEVICE_LOST', 3);
    const error = { ...lost.error, message: 'The GPU was lost: reset.' };
    expect(errorTexts(interruptionReason({ ...lost, error }))).toEqual({
      message: zh.errors?.DEVICE_LOST[0],
      remedy: zh.messages.studio.closeOthers,
      detail: error.message,
    });
    expect(interruptionTitle(interrupted('PAUSED', 4, 1, 2))).toBe(
      '已在第 4 步（共 30 步）暂停，第 2 段，共 2 段',
    );
  } finally {
    setTexts('en');
  }
});

test('finishing early is offered only where it gives another video than to resume', () => {
  expect(finishText(interrupted('PAUSED', 1))).toMatch(/what 1 step gave/);
  expect(finishText(interrupted('PAUSED', 30, 0, 2))).toMatch(/1 clip of 2/);
  expect(finishText(interrupted('PAUSED', 30))).toBeNull();
});
