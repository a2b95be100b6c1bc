/**
 * Puts the public files that are not in the repository where the app serves them from: the bundled
 * model and ffmpeg (module files and core in one folder). Run by `npm run prepare:assets`; the one file of `lib` that needs Node.
 */
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const goldenModel = 'e2e/goldens/tiny-wan/model';
const ffmpegFolders = [
  'node_modules/@ffmpeg/ffmpeg/dist/esm',
  'node_modules/@ffmpeg/core/dist/esm',
];

/**
 * Copies every public asset that is missing or differs from its source in size or time. Each file
 * appears whole or not at all, also when two runs meet.
 *
 * @param root the repository's root
 * @returns the copied files, relative to `root`; empty when all were there
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
  for (const folder of ffmpegFolders) {
    for (const name of await readdir(join(root, folder))) {
      if (!/\.(js|wasm)$/.test(name)) continue; // not the type declarations
      pairs.push([join(root, folder, name), join(root, 'public/ffmpeg', name)]);
    }
  }

  const copied: string[] = [];
  for (const [source, target] of pairs) {
    if (await copyIfChanged(source, target)) copied.push(target.slice(resolve(root).length + 1));
  }
  return copied;
}

async function copyIfChanged(source: string, target: string): Promise<boolean> {
  const from = await stat(source);
  const to = await stat(target).catch(() => undefined);
  if (to?.isFile() && to.size === from.size && sameSecond(to.mtimeMs, from.mtimeMs)) return false;
  await mkdir(dirname(target), { recursive: true });
  const part = `${target}.${randomUUID()}.part`;
  try {
    await copyFile(source, part);
    await utimes(part, from.atime, from.mtime);
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  return true;
}

/** File systems keep times with different precision. */
function sameSecond(a: number, b: number): boolean {
  return Math.abs(a - b) < 1000;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
  const copied = await prepareAssets(root);
  if (copied.length > 0) process.stdout.write(`Prepared ${copied.length} public files.\n`);
}
