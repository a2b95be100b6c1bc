import { copyFile, cp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { KinoraError } from '../../contract';
import { root } from '../paths';
import { finishBuild } from './app-files';
import { nextBinary, nextEnvironment, runQuietly } from './build';
import { compileKernels } from './compile-kernels';
import { prepareAssets } from './prepare-assets';

/** Sources of the pages, without the API and without the commands but for the loader of texts. */
const sources = [
  'package.json',
  'next.config.js',
  'tsconfig.json',
  'app',
  'lib',
  'workers',
  'public',
];
const excluded =
  /(^app\/api|^lib\/cli\/(?!dev(?:\/compile-texts\.js)?$).+|\/goldens|\/testing|\.test\.tsx?)(\/|$)/;

/**
 * The path of `--base-path` as Next takes it: empty for the root of a host, else with a slash before it and none
 * behind it.
 *
 * @throws KinoraError `PARAMETER_INVALID`
 */
export function basePathOf(text: string): string {
  const path = text.replace(/^\/|\/$/g, '');
  if (path === '') return '';
  if (path.split('/').every((part) => /^[\w~-][\w.~-]*$/.test(part))) return `/${path}`;
  throw new KinoraError('PARAMETER_INVALID', `--base-path cannot be '${text}'.`, {
    remedy: 'Give the path of a folder, such as kinora or /kinora.',
  });
}

/**
 * Builds the app without the API as a folder for any static host. It is built from a copy: Next always
 * builds exports in `.next`, where the build of the server is.
 *
 * @param target the folder; what is there is replaced
 * @param basePath path of the folder in which the host has it, such as `/kinora`; empty for the root of a host
 * @returns bytes of all listed files
 * @throws Error with Next's output if the build fails
 */
export async function exportApp(target: string, basePath = ''): Promise<number> {
  await prepareAssets(root);
  await compileKernels();
  // Inside of the checkout, so that packages are found.
  const copy = path.join(root, '.export');
  await rm(copy, { recursive: true, force: true });
  try {
    const isPart = (file: string) => {
      const name = path.relative(root, file).split(path.sep).join('/');
      return !excluded.test(name);
    };
    for (const source of sources) {
      const to = path.join(copy, source);
      await cp(path.join(root, source), to, { recursive: true, filter: isPart });
    }
    const env = { ...nextEnvironment, KINORA_EXPORT: '1', KINORA_BASE_PATH: basePath };
    await runQuietly([nextBinary(), 'build', copy], env);
    const built = path.join(copy, 'out-static');
    const { files } = await finishBuild(copy, built);
    // The scope of a service worker is its folder, unless the server's headers say otherwise.
    const worker = path.join(built, '_next', 'static', 'service-worker', 'sw.js');
    await copyFile(worker, path.join(built, 'sw.js'));
    await rm(target, { recursive: true, force: true });
    await rename(built, target);
    return files.reduce((sum, { bytes }) => sum + bytes, 0);
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}
