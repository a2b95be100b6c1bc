import type { LocalFile } from '../../contract';
import type { ByteSource } from '../formats/byte-source';
import { blobFile, checkRange } from '../formats/source';

/** Bytes read at a time: as large as the pieces that are written. */
const pieceBytes = 8 * 2 ** 20;

/** A picked or dropped file. It is the same as long as its name, size and date are. */
export function localByteSource({ path, file }: LocalFile): ByteSource {
  const whole = blobFile(path, file);
  return {
    ...whole,
    identity: `${path}:${file.size}:${file.lastModified}`,
    sha256: null,
    async *stream(start, end, signal) {
      checkRange(path, file.size, start, end);
      for (let at = start; at < end; at += pieceBytes) {
        signal.throwIfAborted();
        yield await whole.read(at, Math.min(end, at + pieceBytes));
      }
    },
  };
}
