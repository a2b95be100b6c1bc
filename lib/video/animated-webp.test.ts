import { expect, test } from 'vitest';
import { animatedWebp } from './animated-webp';

/** A file of RIFF chunks as a canvas writes it. */
function webp(...chunks: readonly (readonly [name: string, bytes: readonly number[]])[]) {
  const body = chunks.flatMap(([name, bytes]) => {
    const padding = bytes.length % 2 ? [0] : [];
    return [...Buffer.from(name), bytes.length, 0, 0, 0, ...bytes, ...padding];
  });
  return Uint8Array.from([
    ...Buffer.from('RIFF'),
    body.length + 4,
    0,
    0,
    0,
    ...Buffer.from('WEBP'),
    ...body,
  ]);
}

const options = { width: 480, height: 270, interval: 80 };

test('the container has its canvas, its repetition and each picture with its time', () => {
  const made = animatedWebp(
    [webp(['VP8 ', [1, 2, 3]]), webp(['VP8X', [9]], ['ICCP', [7]], ['VP8 ', [4, 5]])],
    options,
  );
  const head = [...Buffer.from('WEBPVP8X'), 10, 0, 0, 0, 0x02, 0, 0, 0, 0xdf, 1, 0, 0x0d, 1, 0];
  const anim = [...Buffer.from('ANIM'), 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
  const place = [0, 0, 0, 0, 0, 0, 0xdf, 1, 0, 0x0d, 1, 0, 80, 0, 0, 2];
  const first = [...Buffer.from('VP8 '), 3, 0, 0, 0, 1, 2, 3, 0];
  const second = [...Buffer.from('VP8 '), 2, 0, 0, 0, 4, 5];
  const body = [
    ...head,
    ...anim,
    ...[...Buffer.from('ANMF'), 28, 0, 0, 0, ...place, ...first],
    ...[...Buffer.from('ANMF'), 26, 0, 0, 0, ...place, ...second],
  ];
  expect([...made]).toEqual([...Buffer.from('RIFF'), body.length, 0, 0, 0, ...body]);
});

test('pictures with transparency are said to have it', () => {
  const made = animatedWebp([webp(['VP8X', [0]], ['ALPH', [1]], ['VP8 ', [2]])], options);
  expect(made[20]).toBe(0x12);
  expect(Buffer.from(made).includes('ALPH')).toBe(true);
});

test.each([
  ['a PNG', Uint8Array.from({ length: 40 }, (_, n) => n)],
  ['an empty file', new Uint8Array()],
  ['one without a picture', webp(['ICCP', [1, 2, 3, 4, 5, 6, 7, 8]])],
])('%s is refused', (_, still) => {
  expect(() => animatedWebp([still], options)).toThrow(TypeError);
});
