import type { WeightFile } from './source';

/**
 * A source file of a model that is read once from end to end while it is converted: a file on the hub,
 * or a local one. `read` is for its header; `stream` for everything after.
 */
export interface ByteSource extends WeightFile {
  /** What the file is: its etag on the hub, or name, size and date of a local file. */
  readonly identity: string;
  /** SHA-256 in hex as the hub announced it; null where nobody did. */
  readonly sha256: string | null;
  /** SHA-1 that git gives its content, where the hub announced that: of small files. */
  readonly gitSha1?: string | null;
  /**
   * As {@link WeightFile.read}; what is still on its way can be given up.
   *
   * @throws the signal's reason
   */
  read(start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>;
  /**
   * Bytes `[start, end)` in ascending order, in pieces of any size. Cuts, refusals and slow answers are
   * healed inside, without fetching a byte twice; several ranges are in flight within bounded memory.
   *
   * @throws KinoraError `HUB_UNREACHABLE`, `HUB_BUSY`, … when it cannot be healed
   * @throws SourceChanged when the file is not the same any more
   */
  stream(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** The file behind a {@link ByteSource} was replaced by another: what is there of it must start over. */
export class SourceChanged extends Error {
  override readonly name = 'SourceChanged';

  constructor(readonly file: string) {
    super(`${file} was changed at its source.`);
  }
}
