/**
 * Packages that only some tests need, and that would triple what `npm ci` installs: e2e/packages has their manifest and
 * its lock file. They are installed when a test first asks for one.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../paths';

const folder = path.join(root, 'e2e', 'packages');
const manifests = ['package.json', 'package-lock.json', '.npmrc'];

let installed: Promise<void> | null = null;

/** Imports a file of these packages, such as `webgpu/index.js`. @throws Error as {@link installTestPackages} */
export async function importTestPackage<T>(file: string): Promise<T> {
  return (await import(pathToFileURL(await testPackageFile(file)).href)) as T;
}

/** Where a file of these packages is. @throws Error as {@link installTestPackages} */
export async function testPackageFile(file: string): Promise<string> {
  await installTestPackages();
  return path.join(folder, 'node_modules', file);
}

/**
 * Installs the packages, unless those of this lock file are there.
 *
 * @throws Error with one sentence when npm fails
 */
export function installTestPackages(): Promise<void> {
  installed ??= install();
  return installed;
}

async function install(): Promise<void> {
  const target = path.join(folder, 'node_modules');
  const lock = await readFile(path.join(folder, 'package-lock.json'));
  const stamp = `.${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`;
  if (existsSync(path.join(target, stamp))) return;
  process.stderr.write('Packages that only tests need are installed in e2e/packages …\n');
  // Moved as a whole: another process may install at the same time.
  const draft = await mkdtemp(path.join(folder, '.draft-'));
  try {
    for (const name of manifests) await copyFile(path.join(folder, name), path.join(draft, name));
    await runNpm(['ci', '--prefix', draft, '--prefer-offline', '--no-audit', '--no-fund']);
    await writeFile(path.join(draft, 'node_modules', stamp), '');
    if (existsSync(path.join(target, stamp))) return;
    await rm(target, { recursive: true, force: true });
    await rename(path.join(draft, 'node_modules'), target);
  } catch (cause) {
    if (existsSync(path.join(target, stamp))) return;
    const sentence = 'The packages of e2e/packages, which this test needs, could not be installed';
    throw new Error(`${sentence}: is the npm registry reachable?`, { cause });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function runNpm(args: readonly string[]): Promise<void> {
  const shell = process.platform === 'win32';
  const npm = spawn('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], shell });
  const [code] = await once(npm, 'exit');
  if (code !== 0) throw new Error(`npm ended with code ${code}.`);
}
