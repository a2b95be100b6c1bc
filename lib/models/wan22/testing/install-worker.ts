/** Installs the golden model inside a Web Worker, where the product does it; for tests only. */
import * as Comlink from 'comlink';
import { toKinoraError } from '../../../contract';
import { httpFolder, openTensorFile } from '../../../weights';
import type { ByteSource } from '../../../weights/formats/source';
import { localByteSource } from '../../../weights/hub/source';
import {
  installComponent,
  installFiles,
  keepStart,
  openModelStore,
  type SourceHash,
  verifyComponent,
} from '../../../weights/store';
import { readModelConfig } from '../config';
import { wan22Installation } from '../install';
import { canonicalise } from '../naming';
import { componentRecipe } from '../recipes';
import { type InstallAnswer, type InstallTask, isBeyond } from './install-messages';

const components = [
  ['transformer', 'formats/transformer-Q8_0.gguf'],
  ['text_encoder', 'formats/text-encoder-Q8_0.gguf'],
  ['vae', 'formats/vae-fp16-original-keys.safetensors'],
] as const;

const post = (answer: InstallAnswer) => self.postMessage(answer);

self.onmessage = async ({ data }: MessageEvent<InstallTask>) => {
  await install(data).then(
    () => post({ type: 'done' }),
    (thrown) => post({ type: 'error', message: String(toKinoraError(thrown)) }),
  );
};

async function install({ goldens, model, killedAt }: InstallTask): Promise<void> {
  const store = (await openModelStore()).folder(model);
  const { signal } = new AbortController();
  const files = wan22Installation.configurationFiles.map(async (path) => ({
    path,
    source: await fetched(goldens, `model/${path}`),
  }));
  const folder = store.folder('configuration');
  await installFiles({ folder, files: await Promise.all(files), signal });

  const thread = new Worker(new URL('./hash-worker.ts', import.meta.url), { type: 'module' });
  const hash = Comlink.wrap<SourceHash>(thread);
  let killed = false;
  // Where it is killed it goes no further than into the next unit, however late the page gets to it.
  const heldHash: SourceHash = {
    start: () => hash.start(),
    resume: (state) => hash.resume(state),
    update: (bytes) => (killed ? new Promise(() => undefined) : hash.update(bytes)),
    state: () => hash.state(),
    digest: () => hash.digest(),
  };
  const config = await readModelConfig(httpFolder(new URL('model/', goldens)));
  for (const [component, path] of components) {
    const source = await keepStart(store.folder(component), 0, await fetched(goldens, path));
    await installComponent({
      folder: store.folder(component),
      component,
      precision: 'int8',
      recipe: componentRecipe(component, config, 'int8'),
      sources: [source],
      tensors: canonicalise(component, [await openTensorFile(source)], config),
      signal,
      onProgress: ({ bytesDone }) => {
        const answer = { type: 'progress', component, bytesDone } as const;
        killed ||= isBeyond(killedAt, answer);
        post(answer);
      },
      onRestart: (reason) => post({ type: 'restart', reason }),
      hash: heldHash,
      limit: 50_000,
      unitsPerCommit: 4,
    });
    await verifyComponent(store.folder(component));
  }
}

/** A file as if the user had chosen it. */
async function fetched(goldens: string, path: string): Promise<ByteSource> {
  const response = await fetch(new URL(path, goldens));
  const file = new File([await response.blob()], path, { lastModified: 1 });
  return localByteSource({ path, file });
}
