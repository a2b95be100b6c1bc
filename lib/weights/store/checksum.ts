import { createXXHash64 } from 'hash-wasm';

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
