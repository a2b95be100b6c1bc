import { copyFile, cp, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { build } from 'esbuild';
import { copyRuntime } from '../../browser/page-bundle';
import { root } from '../../paths';
import { compileKernels } from '../compile-kernels';

const page = path.join(root, 'lib/cli/dev/bench/kernels-page');

/**
 * Writes the page that measures kernels: a folder for any static server, which needs nothing else.
 *
 * @param folder is made if needed; files of these names in it are replaced
 */
export async function writeKernelsPage(folder: string): Promise<void> {
  await compileKernels();
  await mkdir(folder, { recursive: true });
  await build({
    absWorkingDir: root,
    entryPoints: { page: path.join(page, 'page.ts'), 'kernel-bench': 'workers/kernel-bench.ts' },
    outdir: folder,
    bundle: true,
    // Either build of the runtime is loaded when it is known which the browser can run.
    splitting: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    logLevel: 'warning',
  });
  await Promise.all(
    ['index.html', 'page.css'].map((name) =>
      copyFile(path.join(page, name), path.join(folder, name)),
    ),
  );
  await copyRuntime(folder);
  const model = path.join(root, 'public/models/wan2.2-ti2v-5b');
  await cp(model, path.join(folder, 'model'), { recursive: true });
}
