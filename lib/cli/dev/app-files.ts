import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  type AppFile,
  type AppVersion,
  buildPlaceholder,
  type CachedWhen,
  hashOf,
  routePayload,
  versionPath,
} from '../../offline/version';
import { filesBelow } from '../paths';

/** Pages for programs, and what Next makes for itself: not part of the installed app. */
const leftOut =
  /^\/(headless|_global-error|_not-found|404)\b|\.(map|ts|md)$|^\/(readme|app\/screenshots|_next\/static\/service-worker)\/|^\/sw\.js$/;
/** Files that not everybody needs: ffmpeg, llama.cpp, the API's reference, and the model of tests. */
const whenUsed = /^\/(ffmpeg|wllama|models\/tiny)\/|^\/openapi\.json$/;

/**
 * Ends a build: writes the list of the app's files where the service worker finds it, and the id of the
 * build into the service worker.
 *
 * @param folder the checkout
 * @param exported folder of a static export; absent for the build that the server serves
 */
export async function finishBuild(folder: string, exported?: string): Promise<AppVersion> {
  const next = path.join(folder, '.next');
  const buildId = (await readFile(path.join(next, 'BUILD_ID'), 'utf8')).trim();
  const entries = exported
    ? (await filesBelow(exported)).map(
        (file): FileEntry => [exportedPath(file), path.join(exported, file)],
      )
    : await servedFiles(folder, next);
  const files: AppFile[] = [];
  for (const [name, file] of entries.toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (leftOut.test(name)) continue;
    const content = await readFile(file);
    files.push({
      path: name,
      hash: await hashOf(content),
      bytes: content.length,
      when: whenOf(name),
    });
  }
  const version: AppVersion = { files };
  const root = exported ? path.join(exported, '_next') : next;
  const list = path.join(root, versionPath(buildId).slice('/_next/'.length));
  await mkdir(path.dirname(list), { recursive: true });
  await writeFile(list, JSON.stringify(version));
  await nameBuild(path.join(root, 'static', 'service-worker', 'sw.js'), buildId);
  return version;
}

type FileEntry = readonly [path: string, file: string];

/** The files that `npm start` serves: Next's own, its rendered pages and `public/`. */
async function servedFiles(folder: string, next: string): Promise<FileEntry[]> {
  const app = path.join(next, 'server', 'app');
  const statics = path.join(next, 'static');
  const entries: FileEntry[] = [];
  for (const file of await filesBelow(statics)) {
    entries.push([`/_next/static/${file}`, path.join(statics, file)]);
  }
  for (const file of await filesBelow(path.join(folder, 'public'))) {
    entries.push([`/${file}`, path.join(folder, 'public', file)]);
  }
  for (const file of await filesBelow(app)) {
    const [name, ending] = [file.replace(/\.[^./]+$/, ''), path.extname(file)];
    const page = name === 'index' ? '/' : `/${name}`;
    if (ending === '.html') entries.push([page, path.join(app, file)]);
    if (ending === '.body') entries.push([page, path.join(app, file)]);
    if (ending === '.rsc' && !file.includes('.segments/')) {
      entries.push([page + routePayload, path.join(app, file)]);
    }
  }
  return entries;
}

/** `models/index.html` is the page `/models/`; everything else has its own name. */
function exportedPath(file: string): string {
  return `/${file.replace(/(^|\/)index\.html$/, '$1')}`;
}

function whenOf(name: string): CachedWhen {
  if (whenUsed.test(name)) return 'used';
  if (/\/ort[^/]*\.jspi\./.test(name)) return 'jspi';
  if (/\/ort[^/]*\.(asyncify|webgpu)\./.test(name)) return 'asyncify';
  return 'installed';
}

/** Browsers install a service worker again when its bytes change. */
async function nameBuild(script: string, buildId: string): Promise<void> {
  const text = await readFile(script, 'utf8');
  if (!text.includes(buildPlaceholder)) throw new Error(`${script} has no place for its build.`);
  await writeFile(script, text.replaceAll(buildPlaceholder, buildId));
}
