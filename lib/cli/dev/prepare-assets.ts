/**
 * Puts public files where the app serves them from: the bundled model, ffmpeg (module files and core
 * in one folder), llama.cpp, the quick safety checker and the API's reference page, which are not in the
 * repository, and openapi.json, which is.
 */
import { createHash, randomUUID } from 'node:crypto';
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
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { quickChecker } from '../../contract/quick-checker';
import { openApiText } from '../../contract/v3/openapi';

const goldens = 'lib/models/wan22/goldens';
const goldenModel = `${goldens}/model`;
/** What the bundled model has beside its own folder: file of the goldens → place in the model. */
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
/** The quick safety checker (lib/safety): the weights of one of its networks are all that is used of it. */
const nsfwjs = 'node_modules/nsfwjs';

/**
 * Copies every public asset that is missing or differs from its source in size or time. Each file
 * appears whole or not at all, also when two runs meet.
 *
 * @param root the repository's root
 * @returns the written files, relative to `root`; empty when all were there
 */
export async function prepareAssets(root: string): Promise<string[]> {
  const model = await readdir(join(root, goldenModel), { recursive: true, withFileTypes: true });
  const pairs: [source: string, target: string][] = model
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const source = join(entry.parentPath, entry.name);
      return [
        source,
        join(root, 'public/models/tiny', source.slice(join(root, goldenModel).length)),
      ];
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
  pairs.push([join(root, nsfwjs, 'LICENSE'), join(root, 'public/nsfwjs/LICENSE.txt')]);

  const copied: string[] = [];
  for (const [source, target] of pairs) {
    if (await copyIfChanged(source, target)) copied.push(target.slice(resolve(root).length + 1));
  }
  const description = 'public/openapi.json';
  if (await writeIfChanged(join(root, description), openApiText())) copied.push(description);
  return [...copied, ...(await prepareQuickChecker(root))];
}

const topologySchema = z.object({
  weightsManifest: z.tuple([
    z.object({
      weights: z.array(
        z.object({
          name: z.string(),
          shape: z.array(z.int()),
          quantization: z.object({ min: z.number(), scale: z.number(), dtype: z.literal('uint8') }),
        }),
      ),
    }),
  ]),
});

/**
 * Decodes the weights of the quick safety checker, which its package has as text in a script.
 *
 * @throws Error where they are not those that the checker was tested with
 */
async function prepareQuickChecker(root: string): Promise<string[]> {
  const { weights, tensors } = quickChecker;
  const target = (file: string) => `public/nsfwjs/${file}`;
  const isThere = async ({ file, sha256 }: { readonly file: string; readonly sha256: string }) =>
    // Not there yet.
    sha256Of(await readFile(join(root, target(file))).catch(() => '')) === sha256;
  if ((await isThere(weights)) && (await isThere(tensors))) return [];

  const require = createRequire(import.meta.url);
  const source = join(resolve(root), nsfwjs, 'dist/models/mobilenet_v2');
  const bytes = Buffer.from(
    z.string().parse(require(join(source, 'group1-shard1of1.min.js'))),
    'base64',
  );
  const topology = topologySchema.parse(require(join(source, 'model.min.js')));
  const list = topology.weightsManifest[0].weights.map(
    ({ name, shape, quantization: { min, scale } }) => ({ name, shape, min, scale }),
  );
  const made = [
    { ...weights, content: bytes },
    { ...tensors, content: JSON.stringify(list) },
  ];
  for (const { file, sha256, content } of made) {
    const found = sha256Of(content);
    if (found === sha256) continue;
    throw new Error(`${file} of the quick safety checker has SHA-256 ${found}, not ${sha256}.`);
  }
  for (const { file, content } of made) {
    await putWhole(join(root, target(file)), (part) => writeFile(part, content));
  }
  return made.map(({ file }) => target(file));
}

function sha256Of(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
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
