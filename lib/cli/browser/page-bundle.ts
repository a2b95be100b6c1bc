import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Plugin } from 'esbuild';
import compileTexts from '../dev/compile-texts.js';
import { type FileServer, serveFolders } from '../file-server';
import { root } from '../paths';
import { isCurrent, sourcesFile, sumsOf } from './made.js';

/** The bare pages that commands drive: name and script of each. Their workers come with them. */
const pages = {
  headless: 'app/headless/main.ts',
  parity: 'lib/cli/dev/pages/parity.ts',
  'gpu-report': 'lib/cli/dev/pages/gpu-report.ts',
} as const;
export type BarePage = keyof typeof pages;

const workers = ['engine', 'library', 'hash', 'optimizer', 'gpu-report'] as const;

/** Commands that drive a page. `start.js` starts them. */
const commands = ['generate', 'models', 'worker'] as const;

/** The bundle that `npm run build:commands` has made. */
const made = path.join(root, '.commands');

/** Inputs of a bundle besides the files in it; the lock file stands for the packages. */
const makers = [
  ...['lib/cli/browser/page-bundle.ts', 'lib/cli/dev/compile-texts.js'],
  ...['package-lock.json', 'tsconfig.json'],
];

/**
 * Serves the bare pages from this machine only, `/headless.html` and so on, with the app's public files: those that
 * `npm run build:commands` has made where their sources are unchanged, else new ones. They are bundled from the app's
 * own sources, which takes seconds where `next build` takes a minute.
 *
 * The caller closes it. The public files and the compiled kernels are there: every command preloads `prepare.ts`.
 */
export async function servePages(): Promise<FileServer> {
  const files = path.join(root, 'public');
  // A program that was made itself runs only where its sources are unchanged.
  const isMade = process.env.KINORA_MADE === '1' || (await isCurrent(made, root));
  if (isMade) return serveFolders([made, files]);
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-pages-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    await writePages(folder);
    const { base, close } = await serveFolders([folder, files, runtimeFolder()]);
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

/** Makes commands and their pages, until a source changes. They take the place of earlier ones as a whole. */
export async function makePages(target = made): Promise<void> {
  const folder = await mkdtemp(`${target}.part-`);
  try {
    const inputs = [...(await writePages(folder)), ...(await writeCommands(folder))];
    await copyRuntime(folder);
    const own = inputs.filter((file) => !file.includes('node_modules'));
    const sources = [...new Set([...makers, ...own])];
    await writeFile(path.join(folder, sourcesFile), await sumsOf(sources, root));
    await rm(target, { recursive: true, force: true });
    await rename(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns the files that are bundled, by their paths in the checkout */
async function writePages(folder: string): Promise<readonly string[]> {
  // Not loaded, and not needed, where the pages are made.
  const { build } = await import('esbuild');

  const ofWorkers = workers.map((name) => [`${name}-worker`, `workers/${name}.ts`]);
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { ...pages, ...Object.fromEntries(ofWorkers) },
    outdir: folder,
    bundle: true,
    metafile: true,
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
  await Promise.all(
    Object.keys(pages).map((name) => writeFile(path.join(folder, `${name}.html`), html(name))),
  );
  return Object.keys(metafile.inputs);
}

/** Makes a program of each command, as deep in the checkout as its source. @returns as {@link writePages} */
async function writeCommands(folder: string): Promise<readonly string[]> {
  const { build } = await import('esbuild');
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: commands.map((name) => `lib/cli/${name}.ts`),
    outdir: path.join(folder, 'cli'),
    bundle: true,
    metafile: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    define: { 'process.env.KINORA_MADE': '"1"' },
    external: ['playwright', 'esbuild', 'onnxruntime-web'],
  });
  return Object.keys(metafile.inputs);
}

function runtimeFolder(): string {
  return path.dirname(createRequire(import.meta.url).resolve('onnxruntime-web'));
}

/** Copies ONNX Runtime's programs: with suspension of WebAssembly, and for browsers without it. */
async function copyRuntime(folder: string): Promise<void> {
  const runtime = runtimeFolder();
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
