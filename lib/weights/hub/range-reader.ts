import { KinoraError, Signal, untilAborted, untilStalled } from '../../contract';
import { SourceChanged } from '../formats/source';
import { bodyLength, contentRange, plainEtag, sizeOfRefusedRange } from './answers';
import type { HubClient, RemoteFile } from './client';
import { type RetryBudget, Transient } from './retry';

/** How often a whole answer to a range is taken for an accident. */
const wholeAnswersRefused = 2;

export interface RangeOptions {
  readonly client: HubClient;
  readonly file: RemoteFile;
  /** Those that the file is known to go by, shared by its readers. */
  readonly etags: Set<string>;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  /** Where the stream ends that this range is part of. */
  readonly streamEnd: number;
  /** Bytes that may wait to be handed on. */
  readonly mostQueued: number;
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/**
 * One range of a file, fetched in the background until its last byte is there: what is cut goes on at
 * its byte. Iterating hands on what has come, once, in order.
 */
export class RangeReader {
  /** Exclusive. Grows to the end of the stream when the server sends the file whole. */
  end: number;
  /** Whether it is the next to be handed on: only then it may take the place of all that follow. */
  leading = false;
  #position: number;
  #wholeAnswers = 0;
  readonly #retries: RetryBudget;
  readonly #queue: Uint8Array[] = [];
  #queued = 0;
  #running: Promise<void> = Promise.resolve();
  /** Raised when something has come, or the range has ended. */
  readonly #news = new Signal();
  /** Raised when something was handed on. */
  readonly #room = new Signal();
  #began = 0;
  #ended: number | undefined;

  constructor(readonly options: RangeOptions) {
    this.#position = options.start;
    this.end = options.end;
    this.#retries = options.client.retryBudget(`file ${options.file.name}`);
  }

  /** Length of the range. */
  get bytes(): number {
    return this.end - this.options.start;
  }

  /** How long it has taken, attempts and waits between them included. */
  get elapsedMs(): number {
    return (this.#ended ?? this.options.client.clock.now()) - this.#began;
  }

  /** Begins to fetch; failures surface where it is iterated. */
  start(signal: AbortSignal): void {
    const { clock } = this.options.client;
    this.#began = clock.now();
    this.#running = this.#run(signal).finally(() => {
      this.#ended = clock.now();
      this.#news.raise();
    });
    this.#running.catch(() => undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const bytes = this.#queue.shift();
      if (bytes) {
        this.#queued -= bytes.length;
        this.#room.raise();
        yield bytes;
      } else if (this.#ended !== undefined) {
        return await this.#running;
      } else {
        await this.#news.wait(Number.POSITIVE_INFINITY);
      }
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (this.#position < this.end) {
      const before = this.#position;
      try {
        await this.#attempt(signal);
        if (this.#position < this.end) {
          throw new Transient('HUB_UNREACHABLE', 'the connection ended too early');
        }
      } catch (failure) {
        if (this.#position > before) this.#retries.reset();
        await this.#retries.wait(await this.#explain(failure, signal), signal);
      }
    }
  }

  /** One request, read as far as it goes. */
  async #attempt(signal: AbortSignal): Promise<void> {
    const { client, file } = this.options;
    const stall = new Transient('HUB_UNREACHABLE', 'nothing came any more');
    await untilStalled(client.policy.stallMs, stall, signal, async (either, pulse) => {
      const headers = { Range: `bytes=${this.#position}-${this.end - 1}` };
      const init = { headers, signal: either };
      const { name, page } = file;
      const response = await client.request(name, file.url(), page, init);
      pulse.came();
      let skip: number;
      try {
        skip = this.#check(response);
      } catch (reason) {
        // A body that has ended needs no cancel.
        await response.body?.cancel().catch(() => undefined);
        throw reason;
      }
      await this.#readBody(response, skip, either, pulse.came, pulse.rest);
    });
  }

  /** What an answer is; gives the bytes of its body that are not wanted. */
  #check(response: Response): number {
    const { file, etags } = this.options;
    const { size } = file;
    const { headers, status } = response;
    if (status === 416) {
      if ((sizeOfRefusedRange(headers) ?? size) !== size)
        throw new MismatchingAnswer('another size');
      throw new Transient('HUB_ANSWER_INVALID', 'the server says that the file has no such part');
    }
    const range = status === 206 ? contentRange(headers) : null;
    const reported = status === 206 ? range?.size : bodyLength(headers);
    if (reported !== undefined && reported !== null && reported !== size)
      throw new MismatchingAnswer('another size');
    const etag = plainEtag(headers.get('etag'));
    if (etag !== null) {
      if (etags.size > 0 && !etags.has(etag)) throw new MismatchingAnswer('another etag', etag);
      etags.add(etag);
    }
    if (status === 206) {
      // If the header is hidden from the page, the length has to be the one that was asked for.
      const left = this.end - this.#position;
      const right = range ? range.start === this.#position : (bodyLength(headers) ?? left) === left;
      if (right) return 0;
      throw new Transient('HUB_ANSWER_INVALID', 'the server sent another part of the file');
    }
    this.#wholeAnswers++;
    const accident = this.#position > 0 && this.#wholeAnswers <= wholeAnswersRefused;
    if (accident || !this.leading) {
      throw new Transient('HUB_ANSWER_INVALID', 'the server sent the whole file instead of a part');
    }
    // A server without ranges: what is there already is read over, and everything comes in one go.
    this.end = this.options.streamEnd;
    return this.#position;
  }

  async #readBody(
    response: Response,
    skip: number,
    signal: AbortSignal,
    alive: () => void,
    rest: () => void,
  ): Promise<void> {
    const reader = response.body?.getReader();
    if (!reader) throw new Transient('HUB_ANSWER_INVALID', 'the answer has no body');
    let unwanted = skip;
    try {
      while (this.#position < this.end) {
        const { done, value } = await reader.read();
        if (done) return;
        alive();
        const passed = Math.min(unwanted, value.length);
        unwanted -= passed;
        this.#take(value.subarray(passed));
        while (this.#queued > this.options.mostQueued && !signal.aborted) {
          rest();
          await untilAborted(this.#room.wait(Number.POSITIVE_INFINITY), signal);
          alive();
        }
      }
    } catch (cause) {
      throw new Transient('HUB_UNREACHABLE', 'the connection was cut', null, { cause });
    } finally {
      // A body that has ended needs no cancel.
      reader.cancel().catch(() => undefined);
    }
  }

  #take(bytes: Uint8Array): void {
    const part = bytes.subarray(0, this.end - this.#position);
    if (part.length === 0) return;
    this.#position += part.length;
    this.#queue.push(part);
    this.#queued += part.length;
    this.options.onBytes?.(part.length);
    this.#news.raise();
  }

  /** Asks the hub whether the file is still the same, where an answer makes one doubt it. */
  async #explain(failure: unknown, signal: AbortSignal): Promise<unknown> {
    const gone = failure instanceof KinoraError && failure.code === 'HUB_NOT_FOUND';
    if (!(failure instanceof MismatchingAnswer || gone)) return failure;
    const { client, file, etags } = this.options;
    const before = file.url();
    try {
      await file.confirm(signal, client);
    } catch (reason) {
      return reason instanceof SourceChanged ? reason : failure;
    }
    if (failure instanceof MismatchingAnswer) {
      // The hub says that it is the same content: another of its storages has another etag for it.
      if (failure.etag !== undefined) etags.add(failure.etag);
      return failure;
    }
    const moved = file.url() !== before;
    return moved ? new Transient('HUB_NOT_FOUND', 'the file was moved') : failure;
  }
}

/** An answer that looks like one of another file. */
class MismatchingAnswer extends Transient {
  constructor(
    what: string,
    readonly etag?: string,
  ) {
    super('HUB_ANSWER_INVALID', `the server announces ${what}`);
  }
}
