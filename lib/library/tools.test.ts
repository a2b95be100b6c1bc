/** @module-tag full */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { finishers, type LocalFile, languageModels } from '../contract';
import { findFinisher, findLanguageModel } from '../weights/store';
import { diskStore } from '../weights/store/testing/disk';
import type { Library } from './library';
import { libraryTests, local, until } from './testing/library';

const now = libraryTests();
const [listed] = languageModels;
const { id = '' } = listed ?? {};
const { repository = '', path = '' } = listed?.sources[0]?.files[0] ?? {};
const golden = fileURLToPath(
  new URL('../language-model/goldens/tiny-qwen3-Q8_0.gguf', import.meta.url),
);

const tools = () => diskStore(`${now().root}/tools`);
async function toolOf(library: Library, of = id) {
  const found = (await library.snapshot()).tools.find(({ manifest }) => manifest.id === of);
  if (!found) throw new Error(`There is no tool ${of}.`);
  return found;
}
async function picked(name: string): Promise<LocalFile> {
  const bytes = new Uint8Array(await readFile(golden));
  return { path: name, file: new File([bytes], name, { lastModified: 1 }) };
}
const slow = { kind: 'slow', pieceBytes: 4096, pauseMs: 20 } as const;

test('a language model is paused, goes on in the next tab where it stopped, is verified and deleted', async () => {
  const first = now().openTab();
  expect((await first.snapshot()).tools.map(({ manifest }) => manifest.id)).toEqual(
    [...languageModels, ...finishers].map((tool) => tool.id),
  );
  const bytes = (await readFile(golden)).length;
  const plan = await first.planDownload(id, 'f32');
  expect(plan).toMatchObject({ download: bytes, store: bytes });

  now().hub.fail({ fault: slow, path, host: 'storage', times: 100 });
  const downloading = first.download(id, 'f32');
  await until(first, ({ tools: all }) =>
    all.some(({ parts: [part] }) => part?.status === 'downloading' && part.bytesDone > 20_000),
  );
  await first.pause(id);
  await downloading;
  expect(await findLanguageModel(tools())).toBeNull();
  now().hub.heal();
  now().hub.forget();

  const second = now().openTab();
  const [part] = (await toolOf(second)).parts;
  expect(part).toMatchObject({ status: 'paused', pausedBy: 'interrupted', bytesTotal: bytes });
  await second.resume(id);
  expect(await toolOf(second)).toMatchObject({ ready: true });
  const served = now().hub.requests.filter((request) => request.path.endsWith(path));
  expect(served.some(({ start }) => start === part?.bytesDone)).toBe(true);
  const { sha256 } = now().hub.repositories.list(repository)?.get(path) ?? {};
  const found = await findLanguageModel(tools());
  expect(found).toMatchObject({ name: `${repository}/${path}`, sha256 });
  expect(found && Buffer.from(await found.file.arrayBuffer())).toEqual(await readFile(golden));

  await second.verify(id);
  expect(await toolOf(second)).toMatchObject({ ready: true });
  const writer = await tools().folder(id).folder('language_model').write('model.gguf');
  await writer.write(9000, new Uint8Array([1, 2, 3, 4]));
  await writer.close();
  await second.verify(id);
  expect((await toolOf(second)).parts).toMatchObject([
    { status: 'absent', error: { code: 'MODEL_FILE_INVALID' } },
  ]);
  await second.download(id, 'f32');
  await second.deleteModel(id);
  expect(await toolOf(second)).toMatchObject({ ready: false, stored: [] });
  expect(await findLanguageModel(tools())).toBeNull();
});

test('a cut is healed, and a file that is not what was announced leaves nothing', async () => {
  const library = now().openTab();
  const cut = { kind: 'cut', afterBytes: 50_000 } as const;
  now().hub.fail({ fault: cut, path, host: 'storage', fromByte: 1 });
  const wrong = { kind: 'shifted', by: 64 } as const;
  await library.download(id, 'f32');
  expect(await toolOf(library)).toMatchObject({ ready: true });
  await library.deleteModel(id);
  now().hub.fail({ fault: wrong, path, host: 'storage', times: 1000 });
  await library.download(id, 'f32').catch(() => undefined);
  expect(await toolOf(library)).toMatchObject({ ready: false });
  expect(await findLanguageModel(tools())).toBeNull();
});

test.each([
  ['no chat model', () => local('formats/text-encoder-Q8_0.gguf', 'a.gguf')],
  ['no GGUF file', () => local('loras/a_peft.safetensors', 'a.gguf')],
])('%s is refused by its header', async (_, file) => {
  const library = now().openTab();
  await expect(library.addTool({ files: [await file()] })).rejects.toMatchObject({
    code: 'MODEL_WRONG_KIND',
    message: expect.stringContaining('a.gguf'),
  });
  expect((await library.snapshot()).tools).toHaveLength(languageModels.length + finishers.length);
});

test('any chat model is added by address, or from a file, and forgotten', async () => {
  const library = now().openTab();
  now().hub.repositories.put('someone/chat', 'Chat.gguf', await readFile(golden));
  const hub = await library.addTool({ address: 'someone/chat' });
  expect(hub).toMatchObject({ manifest: { id: 'chat' }, origin: 'added', ready: false });
  await library.download('chat', 'f32');
  expect(await findLanguageModel(tools())).toMatchObject({ name: 'someone/chat/Chat.gguf' });

  const file = await picked('Mine.gguf');
  await library.addTool({ files: [file] });
  await library.importFiles('mine', 'f32', [file]);
  expect(await toolOf(now().openTab(), 'mine')).toMatchObject({ ready: true });
  // The one that was installed last.
  expect(await findLanguageModel(tools())).toMatchObject({ name: 'Mine.gguf' });
  await library.forgetModel('mine');
  await library.forgetModel('chat');
  expect(await tools().folders()).toEqual([]);
});

test.each([
  ['rife-4.26', 'interpolator', 'tiny-rife/model.safetensors'],
  ['realesr-general-x4v3', 'upscaler', 'compact.pth'],
] as const)('%s is chosen from this computer, and found', async (tool, part, path) => {
  const file = new URL(`../finishing/goldens/${path}`, import.meta.url);
  const bytes = new Uint8Array(await readFile(file));
  const library = now().openTab();
  await library.importFiles(tool, 'f32', [{ path, file: new File([bytes], path) }]);
  expect(await toolOf(library, tool)).toMatchObject({ ready: true });
  expect(await findFinisher(part, tools())).toMatchObject({ size: bytes.length });
  expect(await findLanguageModel(tools())).toBeNull();
});
