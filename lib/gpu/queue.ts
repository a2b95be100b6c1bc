/**
 * Runs jobs one after another, in the order in which they came. Two overlapping runs of ONNX
 * Runtime hang the thread, so every call into it goes through one of these.
 */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as the job does; a failed job does not stop the ones behind it. */
  run<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(job);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}
