/** Compiles the conversion's kernels: AssemblyScript to WebAssembly. */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const folder = fileURLToPath(new URL('../../weights/convert/', import.meta.url));
const resolve = createRequire(import.meta.url).resolve;

const options = [
  ...['--enable', 'simd', '--runtime', 'stub', '--noAssert'],
  ...['--optimizeLevel', '3', '--shrinkLevel', '0'],
  // Vectors are passed between the sources' own files only.
  ...['--disableWarning', '112'],
] as const;

/**
 * Compiles the sources in `assembly/` to `kernels-module.js`, unless that was made from exactly these
 * sources by this compiler. The module appears whole or not at all, also when two runs meet.
 *
 * @param base the folder of both; `lib/weights/convert` when absent
 * @returns whether it was written
 * @throws Error with the compiler's output when the sources have errors
 */
export async function compileKernels(base: string = folder): Promise<boolean> {
  const target = path.join(base, 'kernels-module.js');
  const stamp = `// Made from assembly/ by \`npm run prepare:assets\`: ${await hashOf(base)}\n`;
  // Not made yet.
  const present = await readFile(target, 'utf8').catch(() => '');
  if (present.startsWith(stamp)) return false;

  const work = await mkdtemp(path.join(tmpdir(), 'kinora-kernels-'));
  const part = `${target}.${randomUUID()}.part`;
  try {
    const wasm = path.join(work, 'kernels.wasm');
    const compiler = path.join(path.dirname(resolve('assemblyscript/package.json')), 'bin/asc.js');
    const entry = path.join(base, 'assembly', 'index.ts');
    await promisify(execFile)(process.execPath, [compiler, entry, '--outFile', wasm, ...options]);
    const code = (await readFile(wasm)).toString('base64');
    await writeFile(part, `${stamp}export const wasm =\n  '${code}';\n`);
    await rename(part, target);
  } finally {
    await rm(part, { force: true });
    await rm(work, { recursive: true, force: true });
  }
  return true;
}

/** SHA-256 over the sources, the compiler's version and its options, in hex. */
async function hashOf(base: string): Promise<string> {
  const hash = createHash('sha256');
  const manifest = await readFile(resolve('assemblyscript/package.json'), 'utf8');
  hash.update(`${(JSON.parse(manifest) as { version: string }).version} ${options.join(' ')}\n`);
  for (const name of (await readdir(path.join(base, 'assembly'))).sort()) {
    if (!name.endsWith('.ts')) continue;
    hash.update(`${name}\n`).update(await readFile(path.join(base, 'assembly', name)));
  }
  return hash.digest('hex');
}

/** For Vitest: tests find the module also on a fresh clone. */
export async function setup(): Promise<void> {
  await compileKernels();
}
