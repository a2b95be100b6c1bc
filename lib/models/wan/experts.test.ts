import { expect, test } from 'vitest';
import { expertAt, expertOfLora } from './experts';

test('the first transformer computes from the boundary on, the second one below it', () => {
  const at = (timestep: number) => expertAt({ boundary: 900 }, timestep);
  expect([1000, 900, 899.9, 0].map(at)).toEqual([
    'transformer',
    'transformer',
    'transformer_2',
    'transformer_2',
  ]);
  expect(expertAt({ boundary: null }, 0)).toBe('transformer');
});

test.each([
  ['wan2.2_i2v_A14b_high_noise_lora_rank64_lightx2v_4step_1022.safetensors', 'transformer'],
  ['Wan_2_2_I2V_A14B_LOW_lightx2v_4step_lora_260412_rank_64_fp16.safetensors', 'transformer_2'],
  ['style-HighNoise.safetensors', 'transformer'],
  ['style_LN.safetensors', 'transformer_2'],
  ['highlands.safetensors', null],
  ['flow-of-lowlands.safetensors', null],
  ['high-low-mix.safetensors', null],
  ['low-poly.safetensors', null],
  ['low_rank64.safetensors', null],
])('the name %s says which expert it is for', (name, expert) => {
  expect(expertOfLora({ name })).toBe(expert);
});

test('a request that names the noise decides', () => {
  const metadata = new Map([['modelspec.timestep_range', '900,1000']]);
  expect(expertOfLora({ name: 'high.safetensors', noise: 'low' }, metadata)).toBe('transformer_2');
});

test('the timesteps of the metadata say it, too', () => {
  const of = (range: string) =>
    expertOfLora({ name: 'style' }, new Map([['modelspec.timestep_range', range]]));
  expect([of('900,1000'), of('0,900'), of('0,1000')]).toEqual([
    'transformer',
    'transformer_2',
    null,
  ]);
});
