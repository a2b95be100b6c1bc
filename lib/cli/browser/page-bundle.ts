import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import compileTexts from '../dev/compile-texts.js';
import { type FileServer, serveFolders } from '../file-server';
import { root } from '../paths';

/** The bare pages that commands drive: name and script of each. Their workers come with them. */
const pages = {
  headless: 'app/headless/main.ts',
  parity: 'lib/cli/dev/pages/parity.ts',
  'gpu-report': 'lib/cli/dev/pages/gpu-report.ts',
} as const;
export type BarePage = keyof typeof pages;

const workers = ['engine', 'library', 'hash', 'optimizer', 'gpu-report'] as const;

/**
 * Serves the bare pages from this machine only, `/headless.html` and so on, with the app's public files. They are
 * bundled from the app's own sources, which takes seconds where `next build` takes a minute.
 *
 * The caller closes it. The public files and the compiled kernels are there: every command preloads `prepare.ts`.
 */
export async function servePages(): Promise<FileServer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-pages-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    await writePages(folder);
    const { base, close } = await serveFolders([folder, path.join(root, 'public')]);
    return {
      base,
      close: async () => {
        await close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function writePages(folder: string): Promise<void> {
  const ofWorkers = workers.map((name) => [`${name}-worker`, `workers/${name}.ts`]);
  await build({
    absWorkingDir: root,
    entryPoints: { ...pages, ...Object.fromEntries(ofWorkers) },
    outdir: folder,
    bundle: true,
    // Either build of the runtime is loaded when it is known which the browser can run.
    splitting: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    logLevel: 'warning',
    jsx: 'automatic',
    define: {
      'process.env.NODE_ENV': '"production"',
      'process.env.KINORA_EXPORT': '""',
      'process.env.KINORA_BASE_PATH': '""',
    },
    alias: {
      // As `next.config.js` has it.
      'use-intl/format-message': 'use-intl/format-message/format-only',
      // Its exports name no build for browsers, and they go before its field `browser`.
      '@huggingface/hub': path.join(root, 'node_modules/@huggingface/hub/dist/browser/index.mjs'),
    },
    plugins: [workersBeside, compiledTexts],
  });
  const html = (name: string) =>
    `<!doctype html><meta charset="utf-8"><title>Kinora, ${name}</title>` +
    `<main></main><script type="module" src="${name}.js"></script>\n`;
  await Promise.all([
    copyRuntime(folder),
    ...Object.keys(pages).map((name) => writeFile(path.join(folder, `${name}.html`), html(name))),
  ]);
}

/** Copies ONNX Runtime's programs: with suspension of WebAssembly, and for browsers without it. */
export async function copyRuntime(folder: string): Promise<void> {
  const runtime = path.dirname(createRequire(import.meta.url).resolve('onnxruntime-web'));
  const names = ['jspi', 'asyncify'].map((name) => `ort-wasm-simd-threaded.${name}.wasm`);
  await Promise.all(
    names.map((name) => copyFile(path.join(runtime, name), path.join(folder, name))),
  );
}

/** A worker is an entry of its own: its address names the bundled script in the place of the source. */
const workersBeside: Plugin = {
  name: 'workers beside',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](app|lib|workers)[\\/].*\.tsx?$/ }, async ({ path: file }) => {
      if (file.includes('node_modules')) return null;
      const source = await readFile(file, 'utf8');
      const address = /new URL\('[./\w]*?([\w-]+)\.ts', import\.meta\.url\)/g;
      return {
        contents: source.replace(address, "new URL('./$1-worker.js', import.meta.url)"),
        loader: file.endsWith('x') ? 'tsx' : 'ts',
      };
    });
  },
};

/** As `next.config.js` has it. */
const compiledTexts: Plugin = {
  name: 'compiled texts',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]app[\\/]texts[\\/].*\.json$/ }, async ({ path: file }) => ({
      contents: compileTexts(await readFile(file, 'utf8')),
      loader: 'js',
    }));
  },
};
