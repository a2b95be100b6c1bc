import { expect, test } from 'vitest';
import { mendedConfiguration } from './webcodecs-encoder';

/** As VideoEncoder of Firefox 153 on Linux gives it for 1280×720. */
const ofFirefox = Uint8Array.of(
  ...[1, 100, 0, 40, 3, 1, 0, 25, 103, 103, 100, 0, 40, 172, 217, 64, 80, 5, 186, 16, 0, 0, 3, 0],
  ...[16, 1, 232, 72, 0, 241, 131, 25, 96, 1, 0, 6, 104, 104, 235, 236, 178, 44],
);
const right = Uint8Array.of(
  ...[1, 100, 0, 40, 255, 225, 0, 24, 103, 100, 0, 40, 172, 217, 64, 80, 5, 186, 16, 0, 0, 3, 0],
  ...[16, 1, 232, 72, 0, 241, 131, 25, 96, 1, 0, 5, 104, 235, 236, 178, 44],
);

test('the header byte that Firefox writes twice stands once', () => {
  expect(mendedConfiguration(ofFirefox)).toEqual(right);
});

test('a configuration that is right stays as it is, with what follows the parameter sets', () => {
  const withExtension = Uint8Array.of(...right, 253, 248, 248, 0);
  for (const record of [right, withExtension]) expect(mendedConfiguration(record)).toBe(record);
  const malformed = Uint8Array.of(...ofFirefox, 253, 248, 248, 0);
  expect(mendedConfiguration(malformed)).toEqual(withExtension);
});
