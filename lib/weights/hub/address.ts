import { bareAddress, KinoraError } from '../../contract';

/** Something on the hub that can be fetched. */
export type HubAddress =
  | { readonly kind: 'repository'; readonly repository: string; readonly revision: string }
  | {
      readonly kind: 'file';
      readonly repository: string;
      readonly revision: string;
      readonly path: string;
    };
/** The same, or a file of any web server. */
export type Address = HubAddress | { readonly kind: 'link'; readonly url: string };

/** Hosts that are the public hub, whatever hub is set. */
const publicHosts = ['huggingface.co', 'www.huggingface.co', 'hf.co'];
/** An owner or a name; `.` and `..` are none. */
const word = /^(?!\.\.?$)[\w.-]+$/;

/**
 * Reads what people paste: `owner/name`, `owner/name/path/file.gguf`, a page or download link of the
 * hub (`…/resolve/main/path`, `…/blob/main/path`, `…/tree/main`), or a link to a file elsewhere.
 *
 * @param hub base address of the hub in use; links to it count as the hub's
 * @param revision for addresses that name none
 * @throws KinoraError `ADDRESS_INVALID`
 */
export function parseAddress(text: string, hub: string, revision = 'main'): Address {
  const trimmed = text.trim();
  if (trimmed === '') throw invalid(trimmed, 'it is empty');
  if (!/^[a-z][a-z\d+.-]*:/i.test(trimmed)) {
    const host = publicHosts.find((known) => trimmed.startsWith(`${known}/`));
    return host
      ? parseAddress(`https://${trimmed}`, hub, revision)
      : ofHub(trimmed, trimmed, revision);
  }
  let url: URL;
  try {
    url = new URL(trimmed);
  } catch {
    throw invalid(trimmed, 'it is not a link that can be read');
  }
  if (url.protocol === 'hf:') {
    return ofHub(trimmed, trimmed.slice(3).replace(/^\/+/, ''), revision);
  }
  const base = new URL(hub);
  const prefix = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`;
  if (url.origin === base.origin && url.pathname.startsWith(prefix)) {
    return ofHub(trimmed, url.pathname.slice(prefix.length), revision);
  }
  if (publicHosts.includes(url.hostname)) {
    return ofHub(trimmed, url.pathname.slice(1), revision);
  }
  return { kind: 'link', url: checkLink(trimmed, url) };
}

/** As {@link parseAddress}, of what has to be on the hub. @throws KinoraError `ADDRESS_INVALID` */
export function parseHubAddress(text: string, hub: string, revision?: string): HubAddress {
  const address = parseAddress(text, hub, revision);
  if (address.kind !== 'link') return address;
  throw invalid(text, `it is not on the hub ${hub}; download the file and choose it`);
}

/**
 * The base address of a hub as it is kept: without a slash at its end.
 *
 * @throws KinoraError `ADDRESS_INVALID`
 */
export function parseHub(text: string): string {
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    throw invalid(text, 'a hub is an address such as https://huggingface.co');
  }
  checkLink(text, url, 'hub');
  if (url.search !== '' || url.hash !== '') throw invalid(text, 'a hub has no "?" and no "#"');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** Links are fetched by https; plain http only from this machine, where nothing is in between. */
function checkLink(text: string, url: URL, what: 'hub' | 'file' = 'file'): string {
  const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && local)) {
    throw invalid(text, 'only https links are fetched');
  }
  if (url.username !== '' || url.password !== '') throw invalid(text, 'it has a password in it');
  if (what === 'file' && /(^|\/)$/.test(url.pathname)) throw invalid(text, 'it names no file');
  return url.href;
}

function ofHub(text: string, place: string, revision: string): Address {
  const parts = partsOf(text, place);
  while (parts.at(-1) === '') parts.pop();
  if (parts[0] === 'models') parts.shift();
  const [owner = '', name = '', ...rest] = parts;
  if (['datasets', 'spaces', 'api'].includes(owner)) throw invalid(text, 'it is not a model');
  if (!word.test(owner) || !word.test(name))
    throw invalid(text, 'it is not of the form owner/name');
  const repository = `${owner}/${name}`;
  const names = rest.join('/').split('/');
  if (rest.length > 0 && names.some((part) => part === '' || part === '.' || part === '..')) {
    throw invalid(text, 'its path leads out of the repository');
  }
  const [verb, ...inside] = rest;
  // The hub's own links have it as one part, `refs%2Fpr%2F1`.
  if (inside[0] === 'refs') inside.splice(0, 3, inside.slice(0, 3).join('/'));
  const [named, ...path] = inside;
  if (verb === 'tree' && named !== undefined) {
    if (path.length > 0) throw invalid(text, 'it names a folder; name the repository or a file');
    return { kind: 'repository', repository, revision: named };
  }
  if ((verb === 'resolve' || verb === 'blob' || verb === 'raw') && named !== undefined) {
    if (path.length === 0) throw invalid(text, 'it names no file');
    return { kind: 'file', repository, revision: named, path: path.join('/') };
  }
  if (rest.length === 0) return { kind: 'repository', repository, revision };
  return { kind: 'file', repository, revision, path: rest.join('/') };
}

/** A name that is decoded may have a slash in it, as a revision has. */
function partsOf(text: string, path: string): string[] {
  try {
    return path
      .replace(/[?#].*$/, '')
      .split('/')
      .map(decodeURIComponent);
  } catch {
    throw invalid(text, 'it has a "%" that stands for nothing');
  }
}

function invalid(text: string, reason: string): KinoraError {
  return new KinoraError('ADDRESS_INVALID', `"${bareAddress(text)}" cannot be fetched: ${reason}.`);
}
