import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** The list of the sources of what `npm run build:commands` has made, in the same folder. */
export const sourcesFile = 'sources.json';

/**
 * Whether what lies in a folder was made of the sources as they are.
 *
 * @param {string} folder
 * @param {string} base the checkout
 * @returns {Promise<boolean>}
 */
export async function isCurrent(folder, base) {
  const list = await readFile(path.join(folder, sourcesFile), 'utf8').catch(() => null);
  if (list === null) return false;
  /** @type {[string, string][]} */
  const sources = JSON.parse(list);
  const files = sources.map(([file]) => file);
  return list === (await sumsOf(files, base));
}

/**
 * Files with their SHA-256, as JSON; null for one that is not there.
 *
 * @param {readonly string[]} files
 * @param {string} base
 * @returns {Promise<string>}
 */
export async function sumsOf(files, base) {
  const sums = files.map(async (file) => {
    const bytes = await readFile(path.join(base, file)).catch(() => null);
    return [file, bytes && createHash('sha256').update(bytes).digest('hex')];
  });
  return JSON.stringify(await Promise.all(sums));
}
