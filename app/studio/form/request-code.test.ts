import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseGenerateOptions } from '../../../lib/cli/generate-options';
import { type Framing, parseParameters } from '../../../lib/contract';
import { inspectVideo } from '../../../lib/video/inspect';
import { ProtocolWorker } from '../../../relay/testing/protocol-worker';
import { startTestRelay, type TestRelay } from '../../../relay/testing/server';
import { changeForm, emptyForm, type FormState, modelDefaults, toParameters } from './form-state';
import { type CodeLanguage, requestCode } from './request-code';

const goldens = fileURLToPath(
  new URL('../../../lib/models/wan/goldens/tiny-wan22-ti2v/', import.meta.url),
);
const file = new Blob();

/** A form that no default fits, with texts that each language would take for something else. */
function difficult(): FormState {
  const state = changeForm(emptyForm, {
    type: 'changed',
    values: {
      prompt: `- It's "a boat" \\ $HOME \`id\` ${'"'.repeat(3)} \${x}\nBODY\n船, 5% {y}`,
      negative_prompt: 'rain; "text"',
      size: '720*1280',
      num_inference_steps: '12',
      duration: '6',
      loop: true,
      upscale: 2,
      upscaler: 'realesr-general-x4v3',
      smooth: true,
      guidance_scale: '3.5',
      flow_shift: '4',
      seed: '42',
      model: 'tiny',
      profile: 'ultra-fast',
      decoder: 'full',
      safetyChecker: false,
    },
  });
  const image = changeForm(state, { type: 'imageSet', image: { name: "it's a still.png", file } });
  const lora = { key: 'a', name: 'my style.safetensors', file, scale: '0.5' };
  const listed = { key: 'b', name: 'other.safetensors', file: null, scale: '2' };
  return changeForm(image, { type: 'lorasSet', loras: [lora, listed] });
}

/** What its options come to. */
const options = { decoder: 'full', safetyChecker: false } as const;
const sourceOf = () => 'owner/name/other.safetensors';

describe('programs', { tags: ['full'] }, () => {
  let server: TestRelay;
  let folder: string;
  const end = new AbortController();

  beforeAll(async () => {
    server = await startTestRelay();
    folder = await mkdtemp(path.join(tmpdir(), 'kinora-code-'));
    await writeFile(path.join(folder, "it's a still.png"), await readFile(`${goldens}image.png`));
    const lora = await readFile(`${goldens}loras/a_peft.safetensors`);
    await writeFile(path.join(folder, 'my style.safetensors'), lora);
    const modules = fileURLToPath(new URL('../../../node_modules', import.meta.url));
    await symlink(modules, path.join(folder, 'node_modules'));
    const { origin, workerToken: token } = server;
    void new ProtocolWorker({ origin, token }).run(end.signal);
  });
  afterAll(async () => {
    end.abort();
    await server.stop();
    await rm(folder, { recursive: true });
  });

  const have = (program: string) => spawnSync(program, ['--version']).status === 0;
  const runs: readonly [language: CodeLanguage, command: readonly string[], there: boolean][] = [
    ['curl', ['sh'], have('curl') && have('jq')],
    ['javascript', [process.execPath, '--input-type=module'], true],
    ['python', ['python3', '-'], have('python3')],
  ];
  for (const [language, [program = '', ...args], there] of runs) {
    test.runIf(there)(
      `${language}: makes the video of the form, with the server’s own answer`,
      async () => {
        const lastImage = { name: "it's a still.png", file };
        // The worker's video is not enlarged.
        const values = { upscale: undefined, last_image_at: '2.5' };
        const plain = changeForm(difficult(), { type: 'changed', values });
        const form = changeForm(plain, {
          type: 'imageSet',
          image: lastImage,
          name: 'lastImage',
        });
        const code = requestCode(language, form, options, server.origin, sourceOf);
        const env = {
          NODE_ENV: 'test',
          PATH: process.env.PATH,
          KINORA_KEY: server.apiKey,
        } as const;
        const child = spawn(program, args, { cwd: folder, env });
        let said = '';
        child.stderr.on('data', (text) => {
          said += text;
        });
        child.stdin.end(code);
        const [status] = await once(child, 'close');
        expect(status, said).toBe(0);
        const video = path.join(folder, 'video.mp4');
        const made = await inspectVideo(new Blob([await readFile(video)]));
        expect(made).toMatchObject({ width: 720, height: 1280, frames: 145 });
        await rm(video);

        const headers = { Authorization: `Bearer ${server.apiKey}` };
        const url = `${server.origin}/api/v3/predictions?include_inputs=true&page_size=1`;
        const [newest] = (await (await fetch(url, { headers })).json()).data.items;
        expect(newest.model).toBe('kinora/wan-2.2/i2v-720p-lora-ultra-fast');
        const { loras, ...parameters } = parseParameters(toParameters(form));
        expect(newest.input).toMatchObject({ ...parameters, enable_safety_checker: false });
        expect(newest.input.last_image_at).toBe(2.5);
        expect(newest.input.last_image).toMatch(/\/files\/uploads\//);
        expect(newest.input.loras).toEqual([
          loras[0],
          { path: 'owner/name/other.safetensors', scale: 2 },
        ]);
      },
    );
  }
});

test('the command is read as it was written, by a shell and by its own options', () => {
  const words = (form: FormState) => {
    const line = requestCode('command', form, options, '', sourceOf);
    const print = `npm() { shift 3; printf '%s\\0' "$@"; }\n${line}`;
    return spawnSync('sh', ['-c', print], { encoding: 'utf8' }).stdout.split('\0').slice(0, -1);
  };
  const form = difficult();
  const read = parseGenerateOptions(words(form));
  expect(read).not.toHaveProperty('device.backend');
  expect(read).toMatchObject({
    image: "it's a still.png",
    parameters: parseParameters(toParameters(form)),
    model: 'tiny',
    profile: 'ultra-fast',
    options: { decoder: 'full', cache: undefined, safetyChecker: false },
  });
  const framed = (framing: Framing) => words(changeForm(form, { type: 'imageFramed', framing }));
  for (const framing of [
    { zoom: 0, x: 0.5, y: 0.5, background: '#20a040' },
    { zoom: 2.5, x: 0, y: 0.75, background: 'blur' },
  ]) {
    expect(parseGenerateOptions(framed(framing))).toMatchObject({ options: { framing } });
  }
  // No option says it: the image is saved as it is framed.
  const between = { zoom: 0.5, x: 0.5, y: 0.5, background: 'blur' };
  expect(parseGenerateOptions(framed(between))).toMatchObject({
    image: "it's a still-framed.png",
    options: { framing: undefined },
  });
  const ends = (framing: Framing) => {
    const image = { name: "it's a still.png", file, framing };
    const timed = changeForm(form, { type: 'changed', values: { last_image_at: '2.5' } });
    return words(changeForm(timed, { type: 'imageSet', image, name: 'lastImage' }));
  };
  const framing = { zoom: 2.5, x: 0, y: 0.75, background: 'blur' };
  const ended = parseGenerateOptions(ends(framing));
  expect(ended).toMatchObject({
    lastImage: { from: "it's a still.png", framing },
    parameters: { last_image_at: 2.5, loop: true },
  });
  expect(parseGenerateOptions(ends(between))).toMatchObject({
    lastImage: { from: "it's a still-end-framed.png", framing: undefined },
  });
  const values = { prompt: 'a boat', cache: true, backend: 'wasm', memoryBudget: '6.5' } as const;
  const simple = changeForm(emptyForm, { type: 'changed', values });
  expect(
    requestCode('command', simple, { cache: true, safetyChecker: true }, '', sourceOf),
  ).toBe(`npm run generate -- \\
  --image still.png \\
  --prompt 'a boat' \\
  --cache \\
  --backend wasm \\
  --memory 6.5
`);
});

test('a framed image and a LoRA of Kinora are named as a program can have them', () => {
  const lora = { key: 'a', name: 'mini-sepia.safetensors', file, scale: '1' };
  const framing = { zoom: 2, x: 0, y: 0.5, background: 'blur' };
  const image = { name: 'cat.jpg', file, framing };
  const form = [
    { type: 'imageSet', image } as const,
    { type: 'lorasSet', loras: [lora] } as const,
  ].reduce(changeForm, emptyForm);
  for (const language of ['curl', 'javascript', 'python'] as const) {
    const code = requestCode(language, form, {}, 'https://kinora.example', sourceOf);
    expect(code).toMatch(
      /^(#|\/\/) The image as it is framed .* save it as cat-framed\.png first/m,
    );
    expect(code).not.toContain('cat.jpg');
    expect(code).toContain('/samples/mini-sepia.safetensors');
  }
  const command = requestCode('command', form, {}, '', sourceOf);
  expect(command).toContain('--image cat.jpg');
  expect(command).toContain('--crop 0,0.5,2');
  expect(command).toContain('--lora public/samples/mini-sepia.safetensors:1');
});

test('what differs from the model’s defaults is in the command, and from the API’s in a program', () => {
  const defaults = { num_inference_steps: 8, negative_prompt: 'three legs' };
  const asOffered = changeForm(emptyForm, {
    type: 'modelShown',
    defaults: modelDefaults({ defaults }),
  });
  const code = (language: 'command' | 'curl', form: FormState) =>
    requestCode(language, form, {}, '', sourceOf);
  expect(code('command', asOffered)).not.toMatch(/--steps|--negative-prompt/);
  expect(code('curl', asOffered)).toMatch(/"negative_prompt": "three legs"/);
  const values = { num_inference_steps: '30', negative_prompt: '' };
  const changed = changeForm(asOffered, { type: 'changed', values });
  expect(code('command', changed)).toMatch(/--negative-prompt '' .*--steps 30/s);
  expect(code('curl', changed)).not.toMatch(/negative_prompt|num_inference_steps/);
});
