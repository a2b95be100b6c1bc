import { createSHA256, createXXHash64 } from 'hash-wasm';

/** Begins the checksum of a whole file that is its SHA-256 in hex. */
export const sha256Prefix = 'sha256:';

/** XXH64 of several stretches of bytes, one after another, as 16 hex digits. */
export type Checksum = (parts: readonly Uint8Array[]) => string;

/** Makes the checksum; its code has to be compiled first. */
export async function createChecksum(): Promise<Checksum> {
  const hasher = await createXXHash64();
  return (parts) => {
    hasher.init();
    for (const part of parts) hasher.update(part);
    return hasher.digest();
  };
}

type Awaitable<T> = T | Promise<T>;

/**
 * A running SHA-256 whose state can be kept and taken up again. It may live in another thread: calls take
 * effect in the order in which they are made, and `update` may return before it is done.
 */
export interface SourceHash {
  /** Begins anew. */
  start(): Awaitable<void>;
  /** Goes on from a kept state; false when this is none. */
  resume(state: string): Awaitable<boolean>;
  /** Takes or copies the bytes before it returns: the caller writes over them then. */
  update(bytes: Uint8Array): Awaitable<void>;
  /** The state so far, base64. */
  state(): Awaitable<string>;
  /** In hex. Only `start` and `resume` may follow. */
  digest(): Awaitable<string>;
}

/** Makes the hash; its code has to be compiled first. */
export async function createSourceHash(): Promise<SourceHash> {
  const hasher = await createSHA256();
  return {
    start: () => {
      hasher.init();
    },
    resume(state) {
      try {
        hasher.init();
        hasher.load(Uint8Array.from(atob(state), (char) => char.charCodeAt(0)));
        return true;
      } catch {
        return false; // Of another version of the hasher, or no base64.
      }
    },
    update: (bytes) => {
      hasher.update(bytes);
    },
    state: () => btoa(String.fromCharCode(...hasher.save())),
    digest: () => hasher.digest(),
  };
}

/**
 * The hash as a service for a worker of its own, where it does not hold the conversion up: SHA-256 takes
 * about as long as converting and writing together. For Comlink's `expose`; it can be called at once.
 */
export function sourceHashService(): SourceHash {
  const hash = createSourceHash();
  return {
    start: async () => (await hash).start(),
    resume: async (state) => (await hash).resume(state),
    update: async (bytes) => (await hash).update(bytes),
    state: async () => (await hash).state(),
    digest: async () => (await hash).digest(),
  };
}
