import { expect, test } from 'vitest';
import { type Applied, type Completed, parseParameters } from '../../../../lib/contract';
import { newPrediction, resultOf } from '../../../../lib/predictions/testing/prediction';
import { settingDifferences } from './setting-differences';

const at = '2026-01-01T00:00:00.000Z';
const applied: Applied = {
  steps: 3,
  guidance_scale: 1,
  guided_steps: 0,
  scheduler: 'unipc',
  flow_shift: null,
  adapter: null,
  decoder: 'tiny',
  cache: 'none',
  unused: [],
};

function made(parameters: object, fields: Partial<Completed> = {}): Completed {
  const ended = { status: 'completed', completedAt: at } as const;
  const request = parseParameters({ prompt: 'a boat', ...parameters });
  const result = { ...resultOf('a'), seed: request.seed, ...fields.result };
  return { ...newPrediction(), ...ended, ...fields, parameters: request, result };
}

test('only what differs is listed, with what was really used', () => {
  const first = made({ seed: 1, num_inference_steps: 20 });
  expect(settingDifferences(first, first)).toEqual([]);
  const loras = [{ path: 'swing', scale: 0.5 }];
  const second = made(
    { seed: 2, num_inference_steps: 20, prompt: 'a red boat', loras },
    { profile: 'ultra-fast', result: { ...resultOf('b'), seed: 2, applied } },
  );
  const rows = settingDifferences(first, second);
  expect(rows.map(({ setting, first, second }) => [setting, first, second])).toEqual([
    ['prompt', 'a boat', 'a red boat'],
    ['speed', 'Standard', 'Draft'],
    ['steps', '20', '3'],
    ['guidance', '5', '1'],
    ['flowShift', '5', 'None'],
    ['seed', '1', '2'],
    ['loras', '', 'swing × 0.5'],
    ['decoder', 'Full', 'Tiny'],
  ]);
});

test('a video that was finished early says where', () => {
  const early = { ...resultOf('b'), lastStep: { step: 4, steps: 6 } };
  const rows = settingDifferences(
    made({ seed: 4, num_inference_steps: 6 }),
    made({ seed: 4, num_inference_steps: 6 }, { result: early }),
  );
  expect(rows).toEqual([{ setting: 'steps', first: '6', second: '4 of 6' }]);
});
