import { truncated } from '../formats/source';

/** Takes pieces of any size and gives them out in pieces of the wanted size. */
export class StreamReader {
  readonly #pieces: AsyncIterator<Uint8Array>;
  #rest = new Uint8Array();

  /** @param name of the file, for the message */
  constructor(
    pieces: AsyncIterable<Uint8Array>,
    readonly name: string,
  ) {
    this.#pieces = pieces[Symbol.asyncIterator]();
  }

  /**
   * Fills the target with the next bytes.
   *
   * @throws KinoraError `MODEL_FILE_TRUNCATED` when the stream ends before
   */
  async fill(target: Uint8Array): Promise<void> {
    let done = 0;
    while (done < target.length) {
      if (this.#rest.length === 0) {
        const next = await this.#pieces.next();
        if (next.done) throw truncated(this.name, target.length, done);
        this.#rest = next.value as Uint8Array<ArrayBuffer>;
      }
      const part = this.#rest.subarray(0, target.length - done);
      target.set(part, done);
      done += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
  }

  /** Ends the stream, wherever it is. */
  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}
