import { bareAddress, KinoraError } from '../../contract';

/** Something on the hub or on the web that can be fetched. */
export type Address =
  | { readonly kind: 'repository'; readonly repository: string; readonly revision: string }
  | {
      readonly kind: 'file';
      readonly repository: string;
      readonly revision: string;
      readonly path: string;
    }
  /** A file of any web server. */
  | { readonly kind: 'link'; readonly url: string };

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
    return ofHub(trimmed, trimmed.slice(host ? host.length + 1 : 0), revision);
  }
  let url: URL;
  try {
    url = new URL(trimmed);
  } catch {
    throw invalid(trimmed, 'it is not a link that can be read');
  }
  if (url.protocol === 'hf:') return ofHub(trimmed, trimmed.slice(3).replace(/^\/+/, ''), revision);
  const base = new URL(hub);
  const prefix = base.pathname.endsWith('/') ? base.pathname : `${base.pathname}/`;
  if (url.origin === base.origin && url.pathname.startsWith(prefix)) {
    return ofHub(trimmed, decoded(trimmed, url.pathname.slice(prefix.length)), revision);
  }
  if (publicHosts.includes(url.hostname)) {
    return ofHub(trimmed, decoded(trimmed, url.pathname.slice(1)), revision);
  }
  return { kind: 'link', url: checkLink(trimmed, url) };
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

function ofHub(text: string, path: string, revision: string): Address {
  const parts = path.replace(/[?#].*$/, '').split('/');
  while (parts.at(-1) === '') parts.pop();
  if (parts[0] === 'models') parts.shift();
  const [owner = '', name = '', ...rest] = parts;
  if (['datasets', 'spaces', 'api'].includes(owner)) throw invalid(text, 'it is not a model');
  if (!word.test(owner) || !word.test(name))
    throw invalid(text, 'it is not of the form owner/name');
  const repository = `${owner}/${name}`;
  if (rest.some((part) => part === '' || part === '.' || part === '..')) {
    throw invalid(text, 'its path leads out of the repository');
  }
  const [verb, named] = rest;
  if (verb === 'tree' && named !== undefined) {
    if (rest.length > 2) throw invalid(text, 'it names a folder; name the repository or a file');
    return { kind: 'repository', repository, revision: named };
  }
  if ((verb === 'resolve' || verb === 'blob' || verb === 'raw') && named !== undefined) {
    if (rest.length < 3) throw invalid(text, 'it names no file');
    return { kind: 'file', repository, revision: named, path: rest.slice(2).join('/') };
  }
  if (rest.length === 0) return { kind: 'repository', repository, revision };
  return { kind: 'file', repository, revision, path: rest.join('/') };
}

function decoded(text: string, path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw invalid(text, 'it has a "%" that stands for nothing');
  }
}

function invalid(text: string, reason: string): KinoraError {
  return new KinoraError('ADDRESS_INVALID', `"${bareAddress(text)}" cannot be fetched: ${reason}.`);
}
