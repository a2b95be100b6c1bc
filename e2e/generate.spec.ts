import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { phaseNames } from '../lib/contract';
import { inspectVideo } from '../lib/video/inspect';
import { type RunningCommand, startCommand } from './support/command';
import { expect, full, loraPath, picture, picturePath, test } from './support/fixtures';

/** Starts `npm run generate` with the model of tests, unless `args` names one, in a folder of its own. */
async function start(...args: readonly string[]): Promise<RunningCommand> {
  return startWith({}, '--model', 'tiny', ...args);
}

/** The same with settings in the environment. */
async function startWith(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<RunningCommand> {
  const parent = test.info().outputPath();
  await mkdir(parent, { recursive: true });
  return startCommand('generate', args, await mkdtemp(path.join(parent, 'run-')), env);
}

async function facts(file: string) {
  return await inspectVideo(await openAsBlob(file));
}

test('generate makes a video of the sample and says what it did', full, async () => {
  // Without a graphics card the CPU is what it takes by itself.
  const run = await start('--steps', '2', '--seed', '7', '--fast', '--loop');
  expect(await run.code, run.stderr()).toBe(0);
  const [name = ''] = await readdir(path.join(run.folder, 'out'));
  expect(name).toMatch(/^[0-9a-f]{32}\.mp4$/);
  expect(await facts(path.join(run.folder, 'out', name))).toMatchObject({
    width: 1280,
    height: 720,
    // A loop leaves out its last frame.
    frames: 120,
    frameRate: 24,
    codec: expect.stringMatching(/^avc1/),
    fastStart: true,
  });
  const said = run.stdout();
  for (const part of [
    'Load model',
    'Ultra-fast: 3 steps with Tiny few-step',
    'step 3 of 3',
    'frame 120 of 120',
  ]) {
    expect(said).toContain(part);
  }
  expect(said).toMatch(new RegExp(`^file +${path.join('out', name)}$`, 'm'));
  expect(said).toMatch(/^seed +7$/m);
  expect(said).toMatch(/^model +tiny on wasm$/m);
  expect(said).toMatch(/^profile +ultra-fast$/m);
  expect(said).toMatch(
    /^applied +3 steps by few-step, no guidance, Tiny few-step \(Apache-2\.0\), tiny decoder$/m,
  );
  // The weights of the denoiser are loaded after the prompt was read.
  expect(said.match(/^Load model$/gm)).toHaveLength(1);
  expect(said).toMatch(/^ {2}frame \d+ of 120, about \d+ s left$/m);
  for (const phase of ['load', 'text', 'image', 'denoise', 'decode', 'finish'] as const) {
    expect(said).toMatch(new RegExp(`^${phaseNames[phase]} +\\d+\\.\\d\\d s$`, 'm'));
  }
  expect(said).toMatch(/^Total +\d+\.\d\d s$/m);
});

test(
  'generate: ten seconds, portrait, LoRAs, its own file, an image from the web',
  full,
  async () => {
    const server = createServer((_request, response) => response.end(picture()));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const run = await start(
      ...['--image', `http://127.0.0.1:${port}/still.png`, '--prompt', 'A door opens slowly'],
      ...['--negative-prompt', 'noise', '--size', '720*1280', '--duration', '10', '--steps', '1'],
      ...['--guidance', '1', '--flow-shift', '3', '--seed', '-1', '--backend', 'wasm'],
      ...['--last-image', picturePath, '--last-image-at', '7.5'],
      ...['--lora', `${loraPath('a_peft')}:0.8`, '--lora', `${loraPath('b_lightx2v_diff_b')}:1.7`],
      ...['--out', path.join('made', 'here.mp4')],
    );
    try {
      expect(await run.code, run.stderr()).toBe(0);
    } finally {
      server.close();
    }
    expect(await readdir(run.folder, { recursive: true })).toEqual(['made', 'made/here.mp4']);
    expect(await facts(path.join(run.folder, 'made', 'here.mp4'))).toMatchObject({
      width: 720,
      height: 1280,
      frames: 241,
      frameRate: 24,
    });
    expect(run.stdout()).toContain('(clip 2 of 2)');
    const file = await readFile(path.join(run.folder, 'made', 'here.mp4'), 'latin1');
    expect(file).toContain('"last_image_at":7.5');
  },
);

// What else is refused is tested beside the code that reads options and files.
test('generate refuses a missing image before anything is started, and leaves nothing', async () => {
  // A browser that is not there would be the complaint if it were started.
  const run = await startWith({ KINORA_BROWSER: '/none' }, '--image', 'none.png', '--prompt', 'p');
  expect(await run.code).toBe(1);
  const [sentence = '', remedy = ''] = run.stderr().split('\n');
  expect(sentence).toMatch(/^IMAGE_MISSING: \S.*\.$/);
  expect(remedy).toMatch(/\S/);
  expect(run.stdout()).toBe('');
  expect(await readdir(run.folder, { recursive: true })).toEqual([]);
});
