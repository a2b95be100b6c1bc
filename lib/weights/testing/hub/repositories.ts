import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** One file of a repository. */
export interface HubFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Large files are kept in another place, by the hash of their content. */
  readonly large: boolean;
  /** Hash that git gives its content: SHA-1 of `blob <size>\0` and the bytes. */
  readonly oid: string;
  readonly sha256: string;
}

/** Repositories of a hub, with a commit for each state of their content. */
export class Repositories {
  readonly #files = new Map<string, Map<string, HubFile>>();
  readonly #bySha = new Map<string, HubFile>();
  readonly #commits = new Map<string, string>();
  /** What the cards of repositories name as their licence. */
  readonly licences = new Map<string, string>();
  /** Repositories whose files need this token; their lists do not. */
  readonly gates = new Map<string, string>();

  /** @param largeFrom files of this many bytes are kept in the other place */
  constructor(readonly largeFrom: number) {}

  /** Adds a file, or replaces it. */
  put(repository: string, filePath: string, content: Uint8Array | string): void {
    const bytes = new Uint8Array(
      typeof content === 'string' ? new TextEncoder().encode(content) : content,
    );
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const oid = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
    const file = { bytes, large: bytes.length >= this.largeFrom, oid, sha256 };
    const files = this.#files.get(repository) ?? new Map<string, HubFile>();
    this.#files.set(repository, files.set(filePath, file));
    this.#bySha.set(sha256, file);
  }

  /** Adds every file of a folder on disk. */
  async putFolder(repository: string, folder: string): Promise<void> {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const file = path.join(entry.parentPath, entry.name);
      const inside = path.relative(folder, file).split(path.sep).join('/');
      this.put(repository, inside, await readFile(file));
    }
  }

  list(repository: string): ReadonlyMap<string, HubFile> | undefined {
    return this.#files.get(repository);
  }

  stored(sha256: string): HubFile | undefined {
    return this.#bySha.get(sha256);
  }

  /** Gives the repository's state a known commit: for files that a manifest names by it. */
  pin(repository: string, commit: string): void {
    this.#commits.set(repository, commit);
  }

  /** The commit of the present state. */
  commit(repository: string): string {
    const pinned = this.#commits.get(repository);
    if (pinned !== undefined) return pinned;
    const hash = createHash('sha1');
    for (const [name, { oid }] of [...(this.#files.get(repository) ?? [])].sort()) {
      hash.update(`${name}\0${oid}\n`);
    }
    return hash.digest('hex');
  }
}
