import { afterEach, expect, test } from 'vitest';
import { parseManifest } from '../../contract';
import { browserRuntime, relativeRms, WasmBackend } from '../../gpu';
import { httpFolder } from '../../weights';
import { deleteComponent, openModelStore, readStoredComponent } from '../../weights/store';
import { openFile, openGolden } from './parity/golden';
import { encodeGoldenImage, encodeGoldenPrompts, loop, openTransformer } from './parity/pipeline';
import { openStoredParts } from './parts';
import {
  type InstallAnswer,
  type InstallTask,
  isBeyond,
  type KilledAt,
} from './testing/install-messages';

const goldens = new URL('/lib/models/wan22/goldens/', location.href);
const model = 'stored-tiny';
const manifest = parseManifest({
  id: model,
  name: 'Tiny',
  description: 'Random weights.',
  licence: { name: 'Apache-2.0' },
  nativeSizes: {
    '1280*720': { width: 96, height: 64 },
    '720*1280': { width: 64, height: 96 },
  },
  maxClipFrames: 121,
});

afterEach(async () => (await openModelStore()).folder(model).clear());

/** Starts an installation, and kills its worker where that is told. */
function install(killedAt?: KilledAt): Promise<InstallAnswer[]> {
  const worker = new Worker(new URL('./testing/install-worker.ts', import.meta.url), {
    type: 'module',
  });
  const answers: InstallAnswer[] = [];
  return new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message));
    worker.onmessage = ({ data }: MessageEvent<InstallAnswer>) => {
      answers.push(data);
      if (data.type !== 'done' && data.type !== 'error' && !isBeyond(killedAt, data)) return;
      worker.terminate();
      resolve(answers);
    };
    const task: InstallTask = { goldens: goldens.href, model, ...(killedAt && { killedAt }) };
    worker.postMessage(task);
  });
}

test('a worker that is killed twice installs the model, and it runs from the store', async () => {
  const store = (await openModelStore()).folder(model);
  await install({ component: 'transformer', bytes: 100_000 });
  expect(await readStoredComponent(store.folder('transformer'))).toBeNull();
  const second = await install({ component: 'vae', bytes: 1_000_000 });
  expect(second.find(({ type }) => type === 'progress')).toMatchObject({
    component: 'transformer',
  });
  const first = second.find((answer) => answer.type === 'progress');
  const wentOn = first?.type === 'progress' ? first.bytesDone : Number.NaN;
  expect(wentOn).toBeGreaterThan(100_000);
  expect(wentOn).toBeLessThan(200_000);
  const last = await install();
  expect(last.at(-1)).toEqual({ type: 'done' });
  expect([...second, ...last].filter(({ type }) => type === 'restart')).toEqual([]);

  // The hash went through two workers' lives.
  const file = await fetch(new URL('formats/transformer-Q8_0.gguf', goldens));
  const digest = await crypto.subtle.digest('SHA-256', await file.arrayBuffer());
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0'));
  const stored = await readStoredComponent(store.folder('transformer'));
  expect(stored?.sources[0]?.sha256).toBe(hex.join(''));

  const opened = await openStoredParts(manifest, store);
  expect(opened).toMatchObject({ precision: 'int8', packed: true });
  const backend = new WasmBackend(await browserRuntime());
  const golden = await openGolden(httpFolder(goldens));
  const context = {
    golden: {
      ...golden,
      model: opened.folder,
      components: {
        transformer: async () => opened.transformer,
        textEncoder: async () => opened.textEncoder,
        vae: async () => opened.vae,
      },
    },
    backend,
    stageTolerance: 1e-4,
    loopTolerance: 1e-3,
    formatsVideoTolerance: 2e-3,
    loraFiles: [],
  };
  const image = await encodeGoldenImage(context);
  const [prompt, negativePrompt] = await encodeGoldenPrompts(context, 'int8');
  const transformer = await openTransformer(context, 'int8');
  const inputs = { image, prompt, negativePrompt };
  const latents = await loop(context, transformer, inputs, golden.settings.guidance_scale);
  const reference = await openFile(golden.folder, 'formats/golden-q8.safetensors');
  const error = relativeRms(latents, await reference.read('final_latents'));
  console.log(`latents from the store: ${error}`);
  expect(error).toBeLessThan(1e-3);
  await backend.dispose();

  await deleteComponent(store.folder('vae'));
  const opening = openStoredParts(manifest, store);
  await expect(opening).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
});
