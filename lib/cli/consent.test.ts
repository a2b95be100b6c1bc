import { readFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import {
  type AdapterChoices,
  adapterOffers,
  type DownloadPlan,
  guidanceOffers,
  parseManifest,
} from '../contract';
import { testManifest } from '../contract/testing/manifest';
import { askToDownload, offerText, withDiskSpace } from './consent';

const need = { full: 2, least: 1 };
const manifest = testManifest({
  licence: { name: 'Apache-2.0', url: 'https://example.org/licence' },
  choices: [{ precision: 'int8', name: '8-bit', memory: { standard: need, 'ultra-fast': need } }],
});

const plan: DownloadPlan = {
  parts: [
    {
      component: 'transformer',
      files: [{ name: 'owner/name/t.gguf', bytes: 5_000_000_000 }],
      bytesLeft: 2_000_000_000,
      bytesTotal: 5_000_000_000,
    },
    {
      component: 'vae',
      files: [{ name: 'owner/name/v.safetensors', bytes: 1_000_000_000 }],
      bytesLeft: 0,
      bytesTotal: 1_000_000_000,
    },
  ],
  download: 2_000_000_000,
  store: 2_100_000_000,
  storage: { usage: 4_000_000_000, quota: 100_000_000_000, persistent: true },
  left: 93_900_000_000,
};

/** Streams that stand for a person at a terminal who types `answer`. */
function terminal(answer: string, isTTY = true) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { isTTY });
  input.write(answer);
  return { input, output };
}

const never = new AbortController().signal;

it('says what would be fetched, its licence, where to, and the free space before and after', () => {
  const text = offerText({
    manifest,
    precision: 'int8',
    plan: withDiskSpace(plan, 10_000_000_000),
    hub: 'https://hub',
    home: '/models',
  });
  expect(text.split('\n')).toEqual([
    'Model M is not here completely:',
    '',
    '  Transformer      2.0 GB of 5.0 GB  owner/name/t.gguf',
    '  VAE                here  owner/name/v.safetensors',
    '',
    '  licence        Apache-2.0, https://example.org/licence',
    '  licence        Apache-2.0, https://www.apache.org/licenses/LICENSE-2.0 (Marqo/nsfw-image-detection-384)',
    '  from           https://hub',
    '  to             /models',
    '  precision      8-bit',
    '  download       2.0 GB; 4.0 GB are here',
    '  on disk        2.1 GB',
    '  free           10.0 GB, 7.9 GB afterwards',
    '',
  ]);
});

it('says which part the hub does not have', () => {
  const gone = { component: 'safety_checker', files: [], bytesLeft: 0, bytesTotal: 0 } as const;
  const known = { ...plan, parts: [...plan.parts, gone] };
  const text = offerText({ manifest, precision: 'int8', plan: known, hub: 'h', home: '/models' });
  expect(text).toMatch(/^ {2}Safety checker not on the hub/m);
});

it('says of the chosen adapters alone what their licences are and forbid', async () => {
  const file = new URL('../../public/models/wan2.2-ti2v-5b.json', import.meta.url);
  const real = parseManifest(JSON.parse(await readFile(file, 'utf8')));
  const offered = (adapters?: AdapterChoices) =>
    offerText({ manifest: real, precision: 'int8', adapters, plan, hub: 'h', home: '/m' });
  // What runs beside it comes with it.
  const [, longLive] = adapterOffers(real);
  expect(offered([longLive?.choice ?? ''])).toMatch(
    /licence +Apache-2\.0.*LongLive-Plug-\S+-few-step, \S+LongLive-Plug-\S+-cfg/,
  );
  for (const other of [undefined, []]) expect(offered(other)).not.toContain('LongLive');
  const [guidance] = guidanceOffers(real);
  expect(offered([guidance?.choice ?? ''])).not.toContain('few-step');
  if (guidance) guidance.adapter.licence.commercial = false;
  expect(offered([guidance?.choice ?? ''])).toMatch(/note +LongLive-Plug guidance may not be used/);
  expect(offered()).not.toContain('commercially');
});

it('counts the free space of the disk, and the quota where that is less', () => {
  expect(withDiskSpace(plan, 1_000_000_000).left).toBe(-1_100_000_000);
  expect(withDiskSpace(plan, 1e15).left).toBe(93_900_000_000);
});

it.each(['y\n', 'Y\n', 'yes\n', ' yes \n'])('takes %j for a yes', async (answer) => {
  await expect(askToDownload('M', terminal(answer), never)).resolves.toBeUndefined();
});

it.each(['\n', 'n\n', 'no\n', 'yesterday\n'])('takes %j for a no', async (answer) => {
  await expect(askToDownload('M', terminal(answer), never)).rejects.toMatchObject({
    code: 'MODEL_NOT_INSTALLED',
    message: 'M was not downloaded.',
  });
});

it('asks nothing without a terminal, and names --yes', async () => {
  await expect(askToDownload('M', terminal('y\n', false), never)).rejects.toMatchObject({
    code: 'MODEL_NOT_INSTALLED',
    remedy: expect.stringContaining('--yes'),
  });
});

it('ends when Ctrl-C ends the command', async () => {
  const abort = new AbortController();
  const asked = askToDownload('M', terminal(''), abort.signal);
  abort.abort();
  await expect(asked).rejects.toThrow();
});
