import { listFiles, modelInfo } from '@huggingface/hub';
import { z } from 'zod';
import {
  bareAddress,
  groupPairs,
  KinoraError,
  type SourceFile,
  servedName,
  untilAborted,
  untilStalled,
} from '../../contract';
import { isHidden, SourceChanged } from '../formats/source';
import type { HubAddress } from './address';
import { bodyLength, contentRange, plainEtag, request } from './answers';
import {
  type Clock,
  RetryBudget,
  type RetryPolicy,
  standardPolicy,
  systemClock,
  Transient,
} from './retry';

/** Base address of the public hub. */
export const publicHub = 'https://huggingface.co';

const bytes = z.int().min(0);
const entrySchema = z.object({
  type: z.string(),
  path: z.string(),
  size: bytes,
  oid: z.string().optional(),
  lfs: z.object({ oid: z.string(), size: bytes }).optional(),
});

/** The metadata at the top of a repository's README. */
const cardSchema = z
  .looseObject({
    license: z.union([z.string(), z.array(z.string())]).optional(),
    license_name: z.string().optional(),
  })
  .transform(({ license, license_name }) => ({
    licence: license_name ?? (license === undefined ? null : [license].flat().join(', ')),
  }));

/** A file of a repository as the hub lists it. */
export interface ListedFile {
  readonly path: string;
  readonly bytes: number;
  /** Hash of its content: SHA-256 for large files, git's SHA-1 for small ones. */
  readonly identity: string;
  /** Null for small files: the hub keeps them in git and does not know it. */
  readonly sha256: string | null;
  /** SHA-1 that git gives the content of a small file; null for large ones. */
  readonly gitSha1: string | null;
}

/** A repository at one commit. */
export interface Listing {
  readonly repository: string;
  /** Null where the hub does not tell; then the revision that was asked for is fetched. */
  readonly commit: string | null;
  /** Licence by the repository's card; null where it names none, or was not asked for it. */
  readonly licence: string | null;
  readonly files: ReadonlyMap<string, ListedFile>;
}

/** A file that can be fetched, and what it is known to be. */
export interface RemoteFile extends Pick<ListedFile, 'identity' | 'sha256' | 'gitSha1'> {
  /** `owner/name/path@commit`, or the link. */
  readonly name: string;
  readonly size: number;
  /** Page of its repository; null for a link. */
  readonly page: string | null;
  /** The name that a link's server gives the file, where that is the name of a LoRA. */
  readonly fileName?: string | undefined;
  /** Where it is now. */
  url(): string;
  /**
   * Asks anew what the file is, and where.
   *
   * @param by the client that fetches it: it may have more patience than the one that found the file
   * @throws SourceChanged when it is another file by now
   */
  confirm(signal: AbortSignal, by: HubClient): Promise<void>;
}

/** Options of {@link HubClient}; all for tests, except `onWait` and `token`. */
export interface HubOptions {
  readonly fetch?: typeof fetch;
  readonly clock?: Clock;
  readonly policy?: Partial<RetryPolicy>;
  /** Called before each wait for another attempt. */
  readonly onWait?: (sentence: string, waitMs: number) => void;
  /** Token of the user's account, for the hub alone: no other host, the storage included, gets it. */
  readonly token?: string | undefined;
}

/**
 * One hub: the public one, a mirror, or a server on this machine.
 *
 * Sizes and hashes come from the tree API. The headers of the redirect to the storage
 * (`x-linked-size`, `x-linked-etag`) have the same, but no page ever sees the headers of a redirect.
 * Of the storage's own answers it may see no more than status, length and type: `ETag`, `Content-Range`
 * and `Retry-After` are used where they are there, and nothing depends on them.
 */
export class HubClient {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly policy: RetryPolicy;
  readonly onWait: HubOptions['onWait'];
  readonly #listings = new Map<string, Promise<Listing>>();

  /** @param base address without a slash at its end, as `parseHub` gives it */
  constructor(
    readonly base: string,
    options: HubOptions = {},
  ) {
    const send = options.fetch ?? ((input, init) => fetch(input, init));
    this.fetch = options.token ? withToken(send, base, options.token) : send;
    this.clock = options.clock ?? systemClock;
    this.policy = { ...standardPolicy, ...options.policy };
    this.onWait = options.onWait;
  }

  /**
   * All files of a repository, at the commit that the revision means now. Asked for once.
   *
   * @throws KinoraError `HUB_NOT_FOUND`, `HUB_DENIED`, `HUB_BUSY`, `HUB_UNREACHABLE`,
   * `HUB_ANSWER_INVALID`
   */
  async list(repository: string, revision: string, signal?: AbortSignal): Promise<Listing> {
    const key = `${repository}@${revision}`;
    const listing = this.#listings.get(key) ?? this.#list(repository, revision);
    if (!this.#listings.has(key)) {
      this.#listings.set(key, listing);
      listing.catch(() => this.#listings.delete(key));
    }
    // Other callers wait for the same request: one that gives up must not end it.
    return signal ? await untilAborted(listing, signal) : await listing;
  }

  /**
   * A file of a repository.
   *
   * @throws KinoraError as {@link list}
   */
  async file(source: SourceFile, signal?: AbortSignal): Promise<RemoteFile> {
    let current = await this.#find(source, signal);
    const { identity, sha256, gitSha1, bytes } = current.file;
    return {
      name: `${source.repository}/${source.path}@${current.revision}`,
      size: bytes,
      identity,
      sha256,
      gitSha1,
      page: this.page(source.repository),
      url: () => this.fileUrl(source.repository, current.revision, source.path),
      confirm: async (abort, by) => {
        by.#listings.delete(`${source.repository}@${source.revision}`);
        current = await by.#find(source, abort);
        const { file } = current;
        if (file.identity !== identity || file.bytes !== bytes) {
          throw new SourceChanged(`${source.repository}/${source.path}`);
        }
      },
    };
  }

  /**
   * A file of any web server that sends its size.
   *
   * @throws KinoraError as {@link list}, but `LINK_UNREACHABLE`
   */
  async link(url: string, signal?: AbortSignal): Promise<RemoteFile> {
    const { size, identity, fileName } = await this.#ask(url, signal).catch((thrown: unknown) => {
      if (!(thrown instanceof KinoraError && thrown.code === 'HUB_UNREACHABLE')) throw thrown;
      throw new KinoraError('LINK_UNREACHABLE', thrown.message, { cause: thrown });
    });
    return {
      name: bareAddress(url),
      fileName,
      size,
      identity,
      sha256: null,
      gitSha1: null,
      page: null,
      url: () => url,
      confirm: async (abort, by) => {
        const now = await by.#ask(url, abort);
        if (now.size === size && now.identity === identity) return;
        throw new SourceChanged(bareAddress(url));
      },
    };
  }

  /** Address of a repository's page. */
  page(repository: string): string {
    return `${this.base}/${repository}`;
  }

  /** Address of a file of a repository. */
  fileUrl(repository: string, revision: string, path: string): string {
    const inside = path.split('/').map(encodeURIComponent).join('/');
    return `${this.base}/${repository}/resolve/${encodeURIComponent(revision)}/${inside}`;
  }

  /** As `request` of answers.ts. */
  request(subject: string, url: string | URL, page: string | null, init: RequestInit) {
    return request(this.fetch, this.clock, subject, url, page, init);
  }

  /** @param server host of the hub, where the request goes there */
  retryBudget(subject: string, server?: string): RetryBudget {
    return new RetryBudget(this.clock, this.policy, subject, this.onWait, server);
  }

  async #find(source: SourceFile, signal?: AbortSignal) {
    const { repository, path, revision } = source;
    const listing = await this.list(repository, revision, signal);
    const file = listing.files.get(path);
    if (!file) {
      throw new KinoraError('HUB_NOT_FOUND', `${repository} has no file ${path} (${revision}).`);
    }
    return { file, revision: listing.commit ?? revision };
  }

  async #list(repository: string, revision: string): Promise<Listing> {
    const common = { hubUrl: this.base, fetch: this.#api(repository) };
    const isCommit = (text: string) => /^[0-9a-f]{40}$/.test(text);
    const files = new Map<string, ListedFile>();
    let commit: string | null = revision;
    let licence: string | null = null;
    try {
      if (!isCommit(revision)) {
        const additionalFields = ['sha' as const, 'cardData' as const];
        const info = await modelInfo({ ...common, name: repository, revision, additionalFields });
        commit = isCommit(info.sha) ? info.sha : null;
        licence = cardSchema.catch({ licence: null }).parse(info.cardData).licence;
      }
      const at = { repo: repository, revision: commit ?? revision, recursive: true };
      for await (const item of listFiles({ ...common, ...at })) {
        const { type, path, size, oid, lfs } = entrySchema.parse(item);
        if (type !== 'file' || isHidden(path)) continue;
        const sha256 = lfs && /^[0-9a-f]{64}$/.test(lfs.oid) ? lfs.oid : null;
        const identity = sha256 ?? oid ?? `${size}`;
        const gitSha1 = !lfs && oid && isCommit(oid) ? oid : null;
        files.set(path, { path, bytes: lfs?.size ?? size, identity, sha256, gitSha1 });
      }
    } catch (cause) {
      // The library throws other errors for answers that it does not expect.
      if (cause instanceof KinoraError) throw cause;
      const sentence = `The hub's list of the files of ${repository} cannot be read.`;
      throw new KinoraError('HUB_ANSWER_INVALID', sentence, { cause });
    }
    return { repository, commit, licence, files };
  }

  /** The library's fetch: it is handed good answers only, tried until one comes. */
  #api(repository: string): typeof fetch {
    const subject = `repository ${repository}`;
    return async (input, init) => {
      const retries = this.retryBudget(subject, new URL(this.base).host);
      const url = input instanceof Request ? input.url : input;
      for (;;) {
        try {
          return await this.#inTime(undefined, async (abort) => {
            const options = { ...init, signal: abort };
            const page = this.page(repository);
            return readable(await this.request(subject, url, page, options), subject);
          });
        } catch (failure) {
          await retries.wait(failure);
        }
      }
    };
  }

  /** Small answers come soon or count as lost. */
  #inTime<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>) {
    const stall = new Transient('HUB_UNREACHABLE', 'it does not answer');
    return untilStalled(this.policy.stallMs, stall, signal, work);
  }

  async #ask(url: string, signal?: AbortSignal): Promise<ReturnType<typeof describe>> {
    const name = bareAddress(url);
    const retries = this.retryBudget(`file ${name}`);
    for (;;) {
      try {
        return await this.#inTime(signal, async (abort) => {
          const init: RequestInit = { headers: { Range: 'bytes=0-0' }, signal: abort };
          const response = await this.request(name, url, null, init);
          // A body that has ended needs no cancel.
          await response.body?.cancel().catch(() => undefined);
          return describe(response, url);
        });
      } catch (failure) {
        await retries.wait(failure, signal);
      }
    }
  }
}

/** Adds a token to the requests to a hub, and to no others; a redirect to another host drops it. */
function withToken(send: typeof fetch, base: string, token: string): typeof fetch {
  const { origin } = new URL(base);
  return (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== origin) return send(input, init);
    const headers = new Headers(init?.headers);
    headers.set('Authorization', `Bearer ${token}`);
    return send(url, { ...init, headers });
  };
}

/** An answer of the API whose body is there and is JSON. */
async function readable(response: Response, subject: string): Promise<Response> {
  const text = await response.text().catch((cause: unknown) => {
    throw new Transient('HUB_UNREACHABLE', 'the connection was cut', null, { cause });
  });
  try {
    JSON.parse(text);
  } catch (cause) {
    const sentence = `${subject}: the answer of the hub is not JSON.`;
    throw new KinoraError('HUB_ANSWER_INVALID', sentence, { cause });
  }
  const { status, headers } = response;
  return new Response(text, { status, headers });
}

function describe(response: Response, url: string) {
  const { headers } = response;
  const name = bareAddress(url);
  if (headers.get('content-type')?.startsWith('text/html')) {
    throw new KinoraError('HUB_ANSWER_INVALID', `${name} is a web page, not a file.`);
  }
  const size =
    response.status === 206 ? (contentRange(headers)?.size ?? null) : bodyLength(headers);
  if (size === null || response.status === 416) {
    throw new KinoraError('HUB_ANSWER_INVALID', `${name} does not tell how large it is.`);
  }
  const etag = plainEtag(headers.get('etag')) ?? headers.get('last-modified') ?? '';
  const addresses = [url, response.url || url];
  const fileName = servedName(headers.get('content-disposition'), addresses);
  return { size, identity: `${etag}:${size}`, fileName };
}

/**
 * The LoRA that an address means: a safetensors file, or the one of its repository, and the other file of its pair where
 * the repository has that. Of a repository's one pair that for high noise is the first.
 *
 * @throws KinoraError `ADDRESS_INVALID` where a repository has none, or several, and what the hub answers
 */
export async function lorasAt(
  client: HubClient,
  address: HubAddress,
  signal?: AbortSignal,
): Promise<readonly [string, (string | undefined)?]> {
  const { repository, revision } = address;
  const { files } = await client.list(repository, revision, signal);
  const loras = [...files.keys()].filter((path) => path.endsWith('.safetensors'));
  const groups: (readonly [string, string?])[] = groupPairs(loras, String);
  if (address.kind === 'file') {
    const { path } = address;
    const pair = groups.find((group) => group.includes(path));
    return [path, pair?.find((file) => file !== path)];
  }
  const [only] = groups;
  if (groups.length === 1 && only) return only;
  throw new KinoraError(
    'ADDRESS_INVALID',
    only === undefined
      ? `${repository} has no safetensors file.`
      : `${repository} has ${groups.length} LoRAs: name one, such as ${repository}/${only[0]}.`,
  );
}
