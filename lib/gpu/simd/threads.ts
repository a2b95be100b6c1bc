import { at } from '../../contract';
import { assemble, type FunctionSource } from '../../wasm/assembler';
import type { Block, SimdHeap } from './heap';

/** Where the threads meet, as numbers from the start of the memory: control words, then those of the job. */
const word = {
  job: 0,
  active: 1,
  next: 2,
  parts: 3,
  module: 4,
  moduleBytes: 5,
  helped: 6,
} as const;
const jobStart = 16;
/** Most words of a job. */
const jobWords = 48;
/** Bytes in front of everything else in the memory. */
export const controlBytes = 4 * (jobStart + jobWords);

/** More threads than this wait for memory. */
const mostThreads = 8;

/** Address of the helpers' program. */
let program: string | undefined;

/** A kernel: its function `part(job, index)` computes one of the parts of a job, whose words are at an address. */
export interface SimdKernel {
  readonly part: (job: number, index: number) => void;
  readonly module: Block;
}

/** Whether this thread may wait for others, and the memory be theirs as well. */
export const mayShare = () => globalThis.crossOriginIsolated && typeof document === 'undefined';

/**
 * Runs kernels by several threads, which take parts of a job from a counter. The result does not depend on who takes
 * which; a thread that has not started yet takes none, and it starts while this one handles messages.
 */
export class SimdThreads {
  readonly #heap: SimdHeap;
  readonly #helpers: readonly Worker[];

  constructor(heap: SimdHeap) {
    this.#heap = heap;
    const count = heap.isShared ? Math.min(navigator.hardwareConcurrency, mostThreads) - 1 : 0;
    this.#helpers = Array.from({ length: Math.max(0, count) }, () => {
      program ??= URL.createObjectURL(
        new Blob([`(${help})(${JSON.stringify({ word, jobStart, jobWords })})`]),
      );
      const helper = new Worker(program);
      helper.postMessage(heap.memory);
      return helper;
    });
  }

  /** A memory of one thread has another buffer when it has grown. */
  get #control(): Int32Array {
    return new Int32Array(this.#heap.memory.buffer, 0, jobStart + jobWords);
  }

  /** Compiles functions, one of which is `part`. */
  compile(functions: readonly FunctionSource[]): SimdKernel {
    const { memory, isShared } = this.#heap;
    const bytes = assemble(functions, isShared);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {
      env: { memory },
    });
    const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
    padded.set(bytes);
    // The helpers compile it from there; without its length they could not tell the padding from a section.
    const block = this.#heap.put(new Float32Array(padded.buffer));
    return {
      part: exports.part as SimdKernel['part'],
      module: { ...block, bytes: bytes.length },
    };
  }

  /**
   * Runs a kernel to its end.
   *
   * @param job i32 each, or the bits of f32
   */
  run({ part, module }: SimdKernel, job: readonly number[], parts: number): void {
    const control = this.#control;
    control.set(job, jobStart);
    if (this.#helpers.length === 0 || parts === 1) {
      for (let index = 0; index < parts; index++) part(4 * jobStart, index);
      return;
    }
    control.set([0, parts, module.at, module.bytes], word.next);
    // An odd number is a job that has parts left.
    Atomics.add(control, word.job, 1);
    Atomics.notify(control, word.job);
    for (;;) {
      const index = Atomics.add(control, word.next, 1);
      if (index >= parts) break;
      part(4 * jobStart, index);
    }
    Atomics.add(control, word.job, 1);
    for (;;) {
      const active = Atomics.load(control, word.active);
      if (active === 0) return;
      Atomics.wait(control, word.active, active);
    }
  }

  /** Parts that helpers have computed. */
  get helped(): number {
    return Atomics.load(this.#control, word.helped);
  }

  dispose(): void {
    for (const helper of this.#helpers) helper.terminate();
  }
}

/** The program of a helper, whose text is sent to it: it uses nothing from outside. */
function help(layout: {
  readonly word: typeof word;
  readonly jobStart: number;
  readonly jobWords: number;
}): void {
  const { word, jobStart, jobWords } = layout;
  self.onmessage = ({ data: memory }: MessageEvent<WebAssembly.Memory>) => {
    const control = new Int32Array(memory.buffer, 0, jobStart + jobWords);
    const kernels = new Map<number, (job: number, index: number) => void>();
    const kernelOf = (address: number, bytes: number) => {
      const code = new Uint8Array(memory.buffer).slice(address, address + bytes);
      const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), {
        env: { memory },
      });
      return exports.part as (job: number, index: number) => void;
    };
    let done = 0;
    for (;;) {
      const job = Atomics.load(control, word.job);
      if (job % 2 === 0 || job === done) {
        // The next job is near, mostly; a wait and a call to wake up take longer.
        let turns = 0;
        while (turns < 300 && Atomics.load(control, word.job) === job) turns += 1;
        if (turns === 300) Atomics.wait(control, word.job, job);
        continue;
      }
      Atomics.add(control, word.active, 1);
      // As long as it is active, and the job was the same afterwards, no other job begins.
      if (Atomics.load(control, word.job) === job) {
        const address = control[word.module] as number;
        const part = kernels.get(address) ?? kernelOf(address, control[word.moduleBytes] as number);
        kernels.set(address, part);
        const parts = control[word.parts] as number;
        for (;;) {
          const index = Atomics.add(control, word.next, 1);
          if (index >= parts) break;
          part(4 * jobStart, index);
          Atomics.add(control, word.helped, 1);
        }
      }
      done = job;
      if (Atomics.sub(control, word.active, 1) === 1) Atomics.notify(control, word.active);
    }
  };
}

/** The bits of a number, as a word of a job. */
export function bitsOf(value: number): number {
  return at(new Int32Array(Float32Array.of(value).buffer), 0);
}
