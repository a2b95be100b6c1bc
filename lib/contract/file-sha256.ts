import { createSHA256 } from 'hash-wasm';

/** SHA-256 in hex of a file, which may be larger than the memory of the page. */
export async function fileSha256(file: Blob): Promise<string> {
  const hash = await createSHA256();
  const reader = file.stream().getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    hash.update(piece.value);
  }
  return hash.digest('hex');
}
