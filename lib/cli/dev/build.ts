import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { filesBelow, root } from '../paths';
import { exitCode, outputOf, signalTree, startChild } from '../process';
import { finishBuild } from './app-files';
import { compileKernels } from './compile-kernels';
import { prepareAssets } from './prepare-assets';

/** Test runners set NODE_ENV to `test`, which Next does not know. */
export const nextEnvironment = { NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' };

/** Sources of a build. Files that the build itself writes into `public/` are not read. */
const sources = [
  'package.json',
  'package-lock.json',
  'next.config.js',
  'tsconfig.json',
  'app',
  'workers',
  'lib',
  'relay',
  'public',
  'lib/models/wan/goldens/tiny-wan22-ti2v/model',
  'lib/cli/dev/build-server.ts',
  'lib/cli/dev/compile-server.ts',
  'lib/cli/dev/compile-texts.js',
];

/** Not part of a build: the commands, reference data, and what `prepare:assets` puts into `public/`. */
const excluded = ['lib/cli', 'lib/models/wan/goldens', 'public/ffmpeg', 'public/models/tiny'];

const stampFile = path.join('.next', 'kinora-stamp');
const buildIdFile = path.join('.next', 'BUILD_ID');

/**
 * SHA-256 over names and contents of everything a build is made from, in hex.
 *
 * @param folder the checkout
 */
export async function sourceHash(folder: string = root): Promise<string> {
  const hash = createHash('sha256');
  hash.update(`${process.version.split('.')[0]}\n`);
  for (const file of (await Promise.all(sources.map((entry) => filesIn(folder, entry)))).flat()) {
    hash.update(`${file}\n`).update(await readFile(path.join(folder, file)));
  }
  return hash.digest('hex');
}

/** Whether a whole build of exactly these sources, pages and server, stands in `.next`. */
export function isBuilt(hash: string, folder: string = root): boolean {
  if (![stampFile, buildIdFile].every((file) => existsSync(path.join(folder, file)))) return false;
  // The stamp names the build as well, so a later `next build` by hand does not pass for this one.
  return readFileSync(path.join(folder, stampFile), 'utf8') === stampText(hash, folder);
}

/** Records that `.next` now holds a build of these sources. */
export function writeStamp(hash: string, folder: string = root): void {
  writeFileSync(path.join(folder, stampFile), stampText(hash, folder));
}

function stampText(hash: string, folder: string): string {
  return `${hash} ${readFileSync(path.join(folder, buildIdFile), 'utf8')}\n`;
}

/** Paths of all files of `entry`, `/` between parts, in a fixed order; tests left out. */
async function filesIn(folder: string, entry: string): Promise<string[]> {
  const absolute = path.join(folder, entry);
  if (!existsSync(absolute)) return [];
  if (statSync(absolute).isFile()) return [entry];
  const leftOut = excluded.filter((name) => name.startsWith(`${entry}/`));
  return (await filesBelow(absolute))
    .map((file) => `${entry}/${file}`)
    .filter((file) => !/\.test\.tsx?$/.test(file))
    .filter((file) => !leftOut.some((name) => file.startsWith(`${name}/`)))
    .sort();
}

/**
 * Builds the app unless `.next` already holds a build of exactly these sources.
 *
 * @param say takes one line about what is done
 * @throws Error with the build's output when it fails
 */
export async function ensureBuild(say: (line: string) => void): Promise<void> {
  // Served from `public/` as they are, so they have to be there with an older build too.
  await prepareAssets(root);
  await compileKernels();
  const hash = await sourceHash();
  if (isBuilt(hash)) return;
  say('Building the app (once; an unchanged tree is not built again) …');
  const startedAt = performance.now();
  await runQuietly([nextBinary(), 'build'], nextEnvironment);
  await finishBuild(root);
  const server = path.join(root, 'lib/cli/dev/build-server.ts');
  await runQuietly(['--import', 'tsx/esm', server], nextEnvironment);
  writeStamp(hash);
  say(`Built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
}

/** Runs a Node program; its output is kept back unless it fails. */
export async function runQuietly(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const child = startChild(args, { env });
  const output = outputOf(child.stdout, child.stderr);
  const endWithUs = () => signalTree(child, 'SIGKILL');
  process.once('exit', endWithUs);
  try {
    const code = await exitCode(child);
    if (code === 0) return;
    const command = path.relative(root, args.join(' '));
    throw new Error(`${command} failed with code ${code}:\n${output().trimEnd()}`);
  } finally {
    process.off('exit', endWithUs);
  }
}

/** A program of an installed package, to be run by Node itself: no shell, on any system. */
export function binary(name: string, file: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return path.join(path.dirname(manifest), file);
}

/** The `next` program. */
export function nextBinary(): string {
  return binary('next', 'dist/bin/next');
}
