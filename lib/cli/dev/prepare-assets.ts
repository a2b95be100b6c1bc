/**
 * Puts public files where the app serves them from: the bundled model, ffmpeg (module files and core
 * in one folder) and llama.cpp, which are not in the repository, and openapi.json, which is.
 */
import { randomUUID } from 'node:crypto';
import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { openApiText } from '../../contract/v3';
import { filesBelow } from '../paths';

const goldens = 'lib/models/wan/goldens/tiny-wan22-ti2v';
const goldenModel = `${goldens}/model`;
/** Files of the bundled model outside of its own folder: file of the goldens → place in the model. */
const goldenParts = {
  [`${goldens}/formats/tiny-decoder-base.safetensors`]:
    'tiny_decoder/diffusion_pytorch_model.safetensors',
  [`${goldens}/loras/b_lightx2v_diff_b.safetensors`]: 'adapter/adapter.safetensors',
  [`${goldens}/loras/a_peft.safetensors`]: 'guidance_adapter/adapter.safetensors',
};
const ffmpegFolders = [
  'node_modules/@ffmpeg/ffmpeg/dist/esm',
  'node_modules/@ffmpeg/core/dist/esm',
];
/** llama.cpp for the CPU of a browser (lib/language-model). */
const wllama = 'node_modules/@wllama/wllama/esm/wasm/wllama.wasm';

/**
 * Copies every public asset that is missing or differs from its source in size or time. Each file
 * appears whole or not at all, also when two runs meet.
 *
 * @param root the repository's root
 * @returns the written files, relative to `root`; empty when all were there
 */
export async function prepareAssets(root: string): Promise<string[]> {
  const model = await filesBelow(join(root, goldenModel));
  const pairs: [source: string, target: string][] = model.map((file) => {
    return [join(root, goldenModel, file), join(root, 'public/models/tiny', file)];
  });
  for (const [source, target] of Object.entries(goldenParts)) {
    pairs.push([join(root, source), join(root, 'public/models/tiny', target)]);
  }
  for (const folder of ffmpegFolders) {
    for (const name of await readdir(join(root, folder))) {
      if (!/\.(js|wasm)$/.test(name)) continue; // not the type declarations
      pairs.push([join(root, folder, name), join(root, 'public/ffmpeg', name)]);
    }
  }

  pairs.push([join(root, wllama), join(root, 'public/wllama/wllama.wasm')]);

  const copied: string[] = [];
  for (const [source, target] of pairs) {
    if (await copyIfChanged(source, target)) copied.push(target.slice(resolve(root).length + 1));
  }
  const description = 'public/openapi.json';
  if (await writeIfChanged(join(root, description), openApiText())) copied.push(description);
  return copied;
}

async function copyIfChanged(source: string, target: string): Promise<boolean> {
  const from = await stat(source);
  // Not there yet.
  const to = await stat(target).catch(() => undefined);
  if (to?.isFile() && to.size === from.size && sameSecond(to.mtimeMs, from.mtimeMs)) return false;
  await putWhole(target, async (part) => {
    await copyFile(source, part);
    await utimes(part, from.atime, from.mtime);
  });
  return true;
}

async function writeIfChanged(target: string, text: string): Promise<boolean> {
  // Not there yet.
  if ((await readFile(target, 'utf8').catch(() => undefined)) === text) return false;
  await putWhole(target, (part) => writeFile(part, text));
  return true;
}

/** Makes a file under another name, which it gets when it is whole. */
async function putWhole(target: string, make: (part: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const part = `${target}.${randomUUID()}.part`;
  try {
    await make(part);
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

/** File systems keep times with different precision. */
function sameSecond(a: number, b: number): boolean {
  return Math.abs(a - b) < 1000;
}
