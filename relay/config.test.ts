import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { configSchema, modelsFor, preferredTo, readConfig } from './config';

const readme = fileURLToPath(new URL('README.md', import.meta.url));

/** Rows of README's table of settings: name and default. */
async function tableOfReadme(): Promise<Map<string, string>> {
  const rows = (await readFile(readme, 'utf8')).matchAll(
    /^\| `([A-Z0-9_]+)`[^|]*\| ([^|]*?)\s*\| [^|]+\|$/gm,
  );
  return new Map([...rows].map(([, name = '', value = '']) => [name, value.replaceAll('`', '')]));
}

function asShown(name: string, value: unknown): string {
  if (name === 'KINORA_DATA') return '.kinora/relay';
  if (value === undefined || value === '') return '';
  if (typeof value === 'boolean') return value ? '1' : '';
  return Array.isArray(value) ? value.join(',') : String(value);
}

test('README lists every setting with its default', async () => {
  const config: Readonly<Record<string, unknown>> = readConfig({});
  const names = Object.keys(configSchema.shape);
  expect(Object.fromEntries(await tableOfReadme())).toEqual(
    Object.fromEntries(names.map((name) => [name, asShown(name, config[name])])),
  );
});

test('families have lists of models, of which some come before others', () => {
  const config = readConfig({
    KINORA_FAMILIES: 'a/b, c/d=x+others+*',
    KINORA_SERVING_MODELS: 'y,x',
  });
  expect(modelsFor(config, 'a/b/i2v')).toEqual(['y', 'x']);
  expect(modelsFor(config, 'c/d/i2v')).toEqual(['x', 'y', '*']);
  const preferred = ['x', 'y', 'z'].map((model) => preferredTo(model, ['x', 'others', 'z']));
  expect(preferred).toEqual([[], ['x'], ['x']]);
  for (const wrong of ['a', 'a/b=', 'a/b=x,a/b=y', 'a/b=x y']) {
    expect(() => readConfig({ KINORA_FAMILIES: wrong })).toThrow(/KINORA_FAMILIES: must have/);
  }
});

test('all wrong settings are named in one error; empty ones count as absent', () => {
  expect(() => readConfig({ PORT: 'http', KINORA_LEASE_SECONDS: '-1' })).toThrow(
    /PORT: .*\nKINORA_LEASE_SECONDS: /,
  );
  expect(() =>
    readConfig({ PORT: 'abc', KINORA_MAX_ATTEMPTS: '9', KINORA_HEARTBEAT_SECONDS: 'x' }),
  ).toThrow(
    [
      'PORT: must be a whole number from 0 to 65535.',
      'KINORA_HEARTBEAT_SECONDS: must be a number of seconds above 0.',
      'KINORA_MAX_ATTEMPTS: must be a whole number from 1 to 3.',
    ].join('\n'),
  );
  expect(readConfig({ PORT: '', KINORA_ALLOW_PRIVATE: 'on' })).toMatchObject({
    PORT: 3000,
    KINORA_ALLOW_PRIVATE: true,
  });
  expect(readConfig({ KINORA_PUBLIC_URL: 'https://a.example/' }).KINORA_PUBLIC_URL).toBe(
    'https://a.example',
  );
});

test('a bucket needs its key', () => {
  expect(() => readConfig({ S3_BUCKET: 'b', S3_ACCESS_KEY_ID: 'a' })).toThrow(
    'S3_SECRET_ACCESS_KEY: is needed with S3_BUCKET.',
  );
});
