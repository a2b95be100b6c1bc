import { expect, it } from 'vitest';
import type { KinoraError } from '../../contract';
import { basePathOf } from './export-app';

it.each([
  ['/', ''],
  ['', ''],
  ['/kinora', '/kinora'],
  ['kinora/', '/kinora'],
  ['/tools/kinora-2.0/', '/tools/kinora-2.0'],
])('the base path %s is %s', (text, path) => expect(basePathOf(text)).toBe(path));

it.each([
  'https://host/kinora',
  '//kinora',
  '/a b',
  '/kinora?x',
  '/../kinora',
  // What the shell of Git for Windows makes of /kinora.
  'C:/Program Files/Git/kinora',
])('%s is no base path', (text) => {
  expect(() => basePathOf(text)).toThrow(
    expect.objectContaining({ code: 'PARAMETER_INVALID' }) as KinoraError,
  );
});
