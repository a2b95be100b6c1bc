import { openAsBlob } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import {
  goldenPath,
  goldenRepository,
  goldenWeights,
  holdVae,
} from '../lib/models/wan/testing/golden-model';
import { inspectVideo } from '../lib/video/inspect';
import { type RunningCommand, startCommand } from './support/command';
import { expect, fixtureVideo, full, test } from './support/fixtures';

/** Starts a command whose models are kept in this test's own folder. */
async function start(command: 'generate' | 'models', ...args: readonly string[]) {
  const home = { KINORA_HOME: test.info().outputPath('home') };
  return startCommand(command, args, test.info().outputPath('run'), home);
}

async function succeeds(...args: Parameters<typeof start>): Promise<string> {
  const run = await start(...args);
  expect(await run.code, run.stderr()).toBe(0);
  return run.stdout();
}

/** The command ends with 1, one sentence with this code, and a remedy. */
async function refuses(code: string, ...args: Parameters<typeof start>): Promise<RunningCommand> {
  const run = await start(...args);
  expect(await run.code, run.stdout()).toBe(1);
  const [sentence = '', remedy = ''] = run.stderr().split('\n');
  expect(sentence).toMatch(new RegExp(`^${code}: \\S.*\\.$`));
  expect(remedy).toMatch(/\S/);
  return run;
}

const make = ['--model', 'golden', '--steps', '1', '--backend', 'wasm', '--out', 'v.mp4'] as const;

test(
  'a model is downloaded by command line, stopped, continued and used without the hub',
  full,
  async ({ hub }) => {
    test.slow();
    const folder = test.info().outputPath('run');
    const weights = Object.keys(goldenWeights) as (keyof typeof goldenWeights)[];
    const sent = () => weights.reduce((sum, part) => sum + hub.served(goldenPath(part)).bytes, 0);

    await test.step('it is found', async () => {
      const said = await succeeds('models', 'add', goldenRepository, '--hub', hub.url);
      expect(said).toContain('Added Golden');
    });

    await test.step('without an answer nothing is fetched', async () => {
      const before = sent();
      const run = await refuses('MODEL_NOT_INSTALLED', 'generate', ...make);
      for (const part of ['Golden is not here yet', 'Apache-2.0', goldenPath('vae'), hub.url]) {
        expect(run.stdout()).toContain(part);
      }
      expect(run.stdout()).toMatch(/^ {2}VAE +2\.1 MB /m);
      expect(run.stdout()).toMatch(/^ {2}free +\d.*afterwards$/m);
      expect(run.stderr()).toContain('--yes');
      expect(sent()).toBe(before);
      expect(await readdir(folder)).toEqual([]);
    });

    await test.step('Ctrl-C pauses it, and meanwhile it has its models to itself', async () => {
      holdVae(hub);
      const run = await start('generate', ...make, '--yes');
      const vae = () => hub.served(goldenPath('vae')).bytes;
      await expect.poll(vae, { timeout: 120_000, intervals: [50] }).toBeGreaterThan(600_000);
      await expect.poll(run.stdout).toMatch(/^ {2}VAE +fetching/m);
      await refuses('BUSY', 'models', 'list');
      run.end('SIGINT');
      expect(await run.code).toBe(130);
      expect(run.stderr()).toMatch(/^CANCELLED: The download of Golden is paused\.$/m);
      expect(await readdir(folder)).toEqual([]);
      hub.heal();
    });

    await test.step('the same command goes on, and makes the video', async () => {
      const begun = hub.served(goldenPath('vae')).bytes;
      expect(begun).toBeLessThan(2_000_000);
      const said = await succeeds('generate', ...make, '--yes');
      expect(said).toContain('Golden is not here completely');
      expect(said).toMatch(/^ {2}VAE +2\.1 MB, complete$/m);
      expect(said).toMatch(/^Memory: .* blocks on the device, decode in one piece$/m);
      expect(said).toMatch(/^model +golden on wasm$/m);
      const [transformer, textEncoder, vae, tinyDecoder] = weights.map(
        (part) => hub.served(goldenPath(part)).bytesTwice,
      );
      expect([transformer, textEncoder, tinyDecoder]).toEqual([0, 0, 0]);
      // The unit that was on its way is lost, and nothing else.
      expect(vae).toBeLessThanOrEqual(begun);
      expect(await readdir(folder)).toEqual(['v.mp4']);
      const facts = await inspectVideo(await openAsBlob(path.join(folder, 'v.mp4')));
      expect(facts).toMatchObject(fixtureVideo);
    });

    await test.step('every byte is as it was written; then it goes', async () => {
      expect(await succeeds('models', 'list')).toMatch(/^golden +ready, int8, 3\.\d MB on disk$/m);
      expect(await succeeds('models', 'verify', 'golden')).toContain('Every stored byte');
      expect(await succeeds('models', 'delete', 'golden')).toContain('Deleted Golden');
    });
  },
);

test('what cannot be fetched is a sentence', full, async () => {
  const nowhere = ['--hub', 'http://127.0.0.1:1', '--yes'];
  await refuses('HUB_UNREACHABLE', 'models', 'download', 'wan2.2-ti2v-5b', ...nowhere);
});
