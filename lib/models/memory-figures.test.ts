import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  formatMemory,
  type ModelManifest,
  parseManifest,
  parseParameters,
  profileNames,
} from '../contract';
import { forecastMemory } from '../pipeline/memory/forecast';
import { familyOf } from '../pipeline/open';
import { resolveSampling } from '../pipeline/profiles';
import { diskFolder } from '../weights/testing/files';
import { modelFamilies } from '.';

const root = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFile(root + path, 'utf8');
const manifests = await Promise.all(
  ['wan2.2-ti2v-5b', 'wan2.2-i2v-a14b', 'wan2.1-i2v-14b-480p', 'wan2.1-i2v-14b-720p'].map(
    async (id) => parseManifest(JSON.parse(await read(`public/models/${id}.json`))),
  ),
);
const [model5b, ...models14b] = manifests as [ModelManifest, ...ModelManifest[]];

/** As pages and READMEs call the profiles. */
const profileTitles = { standard: 'Standard', 'ultra-fast': 'Draft' } as const;

/** As a new download has them: with the tiny decoder, and the first adapter. */
const parts = {
  decoders: ['full', 'tiny'],
  adapters: { adapter: { source: null, misfit: null } },
} as const;

describe.each(manifests)('the manifest of $id', (manifest) => {
  const each = manifest.choices.flatMap((choice) =>
    profileNames.map((profile) => ({ ...choice, profile })),
  );
  test.each(each)(
    'tells the memory that is planned: $profile in $precision',
    {
      tags: ['full'],
      timeout: 120_000,
    },
    async ({ profile, precision, memory }) => {
      const folder = diskFolder(`${root}public/models/${manifest.id}/`);
      const counts = await familyOf(modelFamilies, manifest).count(precision, folder);
      const sampled = resolveSampling(
        { manifest, ...parts },
        profile,
        parseParameters({ prompt: 'x' }),
      );
      const frames = manifest.maxClipFrames;
      const device = { kernels: 'exact', budget: undefined, largestBuffer: undefined } as const;
      const run = { ...sampled, manifest, size: '1280*720', frames } as const;
      const { full, least } = await forecastMemory(counts, run, device);
      expect(memory[profile]).toEqual({ full, least });
    },
  );
});

test('drafts of the 5B fit 8 GB of graphics memory in 8 bits, and 2 GB streamed', () => {
  const choice = model5b.choices.find(({ precision }) => precision === 'int8');
  const { full, least } = choice?.memory['ultra-fast'] ?? { full: 0, least: 0 };
  expect(full / 2 ** 30).toBeLessThan(7.3);
  expect(least / 2 ** 30).toBeLessThan(2.1);
  expect(least).toBeGreaterThan(0);
});

test('the READMEs tell the figures of the manifests', async () => {
  const readme = await read('README.md');
  for (const profile of profileNames) {
    const cells = model5b.choices.map(({ memory }) => {
      const { full, least } = memory[profile];
      return `${formatMemory(full)} at full speed, ${formatMemory(least)} at least`;
    });
    const row = readme.split('\n').find((line) => {
      return line.startsWith(`| Graphics memory, ${profileTitles[profile]} |`);
    });
    for (const cell of cells) expect(row).toContain(cell);
  }
  const needs = model5b.choices.flatMap(({ memory }) => Object.values(memory));
  const most = formatMemory(Math.max(...needs.map(({ full }) => full)));
  expect(readme).toContain(`${most} to keep everything on the card`);
  const table = await read('lib/models/wan/README.md');
  for (const { id, choices, profiles, nativeSizes } of models14b) {
    for (const { precision, memory } of choices) {
      for (const profile of profileNames) {
        const { width, height } = (profiles[profile].nativeSizes ?? nativeSizes)['1280*720'];
        const { full, least } = memory[profile];
        const name = id.includes('a14b') ? 'A14B' : '2.1';
        const first = [name, profileTitles[profile], `${width}×${height}×81`, precision];
        const figures = `${(full / 2 ** 30).toFixed(1)} / ${(least / 2 ** 30).toFixed(1)} GiB`;
        expect(table).toContain(`| ${[...first, figures].join(' | ')} |`);
      }
    }
  }
});
