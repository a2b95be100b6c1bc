import { at } from '../../contract';
import {
  access,
  assemble,
  type Code,
  call,
  type FunctionSource,
  op,
  type ValueType,
} from '../../wasm/assembler';
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
  failed: 7,
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

/** Functions of a module, the last of which computes a part of a job, and the names of its parameters. */
export interface KernelSource<Name extends string> {
  readonly functions: readonly FunctionSource[];
  readonly names: readonly Name[];
}

/**
 * What a function is called with for the parts of a job: a number, or that of the first part and how much more it is
 * of each next one. For `rows` and `groups`, those of a part and of all parts: the last one may have fewer. What is
 * called `index` and `thread` is the number of the part and that of the thread.
 */
export type Job<Name extends string> = Readonly<
  Record<Exclude<Name, 'index' | 'thread'>, number | readonly [number, number]>
>;

/** A compiled kernel: `part(job, index, thread)` computes one of the parts of a job, whose words are at an address. */
interface Kernel {
  readonly part: (job: number, index: number, thread: number) => void;
  readonly module: Block;
  readonly names: readonly string[];
  readonly types: readonly ValueType[];
}

const isCount = (name: string) => name === 'rows' || name === 'groups';

/** Reads what the last one of functions is called with from the words of a job, two for each parameter. */
function partOf({ functions, names }: KernelSource<string>): FunctionSource {
  const { parameters: types } = at(functions, functions.length - 1);
  return {
    name: 'part',
    parameters: ['i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [job, index, thread] = [0, 1, 2].map((i) => at(parameters, i).get) as Three;
      const rest = local('i32');
      const given = (name: string, i: number) => {
        if (name === 'index' || name === 'thread') return name === 'index' ? index : thread;
        const [first, second] = [8 * i, 8 * i + 4].map((bytes) =>
          access(at(types, i) === 'f32' ? 'f32.load' : 'i32.load', [job], bytes),
        ) as [Code, Code];
        if (at(types, i) === 'f32') return first;
        if (!isCount(name)) return op('i32.add', first, op('i32.mul', second, index));
        const left = rest.tee(op('i32.sub', second, op('i32.mul', first, index)));
        return op('select', first, left, op('i32.lt_u', first, rest.get));
      };
      return [call(functions.length - 1, ...names.map(given))];
    },
  };
}
type Three = [Code, Code, Code];

/**
 * Whether this thread may wait for others, and the memory be theirs as well. In Firefox a worker that starts another
 * one on a busy machine may wait for it forever.
 */
export const mayShare = () =>
  typeof document === 'undefined' &&
  globalThis.crossOriginIsolated === true &&
  !navigator.userAgent.includes('Firefox');

/**
 * Runs kernels by several threads, which take parts of a job from a counter. The result does not depend on who takes
 * which; a thread that has not started yet takes none, and it starts while this one handles messages.
 */
export class SimdThreads {
  readonly #heap: SimdHeap;
  readonly #kernels = new Map<string, Kernel>();
  /** Threads that compute, this one too. */
  readonly count: number;
  #helpers: Worker[] | undefined;

  constructor(heap: SimdHeap) {
    this.#heap = heap;
    this.count = heap.isShared ? Math.min(navigator.hardwareConcurrency, mostThreads) : 1;
  }

  /** Helpers, which begin with the first job of several parts. */
  #started(): readonly Worker[] {
    if (this.#helpers) return this.#helpers;
    this.#helpers = [];
    for (let thread = 1; thread < this.count; thread++) {
      program ??= URL.createObjectURL(
        new Blob([`(${help})(${JSON.stringify({ word, jobStart, jobWords })})`]),
      );
      const helper = new Worker(program);
      try {
        helper.postMessage([this.#heap.memory, thread]);
      } catch {
        // WebKitGTK does not pass a shared memory on: one thread computes there.
        helper.terminate();
        break;
      }
      this.#helpers.push(helper);
    }
    return this.#helpers;
  }

  /** A memory of one thread has another buffer when it has grown. */
  get #control(): Int32Array {
    return new Int32Array(this.#heap.memory.buffer, 0, jobStart + jobWords);
  }

  #compile(source: KernelSource<string>): Kernel {
    const { functions, names } = source;
    const { memory, isShared } = this.#heap;
    const bytes = assemble([...functions, partOf(source)], isShared);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {
      env: { memory },
    });
    const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
    padded.set(bytes);
    // The helpers compile it from there; without its length they could not tell the padding from a section.
    const block = this.#heap.put(new Float32Array(padded.buffer));
    return {
      part: exports.part as Kernel['part'],
      module: { ...block, bytes: bytes.length },
      names,
      types: at(functions, functions.length - 1).parameters,
    };
  }

  /**
   * Runs a kernel to its end.
   *
   * @param key tells it from others: it is made and compiled once
   */
  run<Name extends string>(
    key: string,
    source: () => KernelSource<Name>,
    job: Job<Name>,
    parts: number,
  ): void {
    const kernel = this.#kernels.get(key) ?? this.#compile(source());
    this.#kernels.set(key, kernel);
    const { part, module, names, types } = kernel;
    const control = this.#control;
    const given = job as Readonly<Record<string, number | readonly [number, number]>>;
    for (const [i, name] of names.entries()) {
      const value = given[name] ?? 0;
      const pair = typeof value === 'number' ? [value, isCount(name) ? 2 ** 31 - 1 : 0] : value;
      control.set(types[i] === 'f32' ? pair.map(bitsOf) : pair, jobStart + 2 * i);
    }
    if (parts === 1 || this.#started().length === 0) {
      for (let index = 0; index < parts; index++) part(4 * jobStart, index, 0);
      return;
    }
    control.set([0, parts, module.at, module.bytes], word.next);
    // An odd number is a job that has parts left.
    Atomics.add(control, word.job, 1);
    Atomics.notify(control, word.job);
    for (;;) {
      const index = Atomics.add(control, word.next, 1);
      if (index >= parts) break;
      part(4 * jobStart, index, 0);
    }
    Atomics.add(control, word.job, 1);
    for (;;) {
      const active = Atomics.load(control, word.active);
      if (active === 0) break;
      Atomics.wait(control, word.active, active);
    }
    if (Atomics.load(control, word.failed) > 0) throw new Error(`A thread failed at ${key}.`);
  }

  /** Parts that helpers have computed. */
  get helped(): number {
    return Atomics.load(this.#control, word.helped);
  }

  dispose(): void {
    for (const helper of this.#helpers ?? []) helper.terminate();
  }
}

/** The program of a helper, whose text is sent to it: it uses nothing from outside. */
function help(layout: {
  readonly word: typeof word;
  readonly jobStart: number;
  readonly jobWords: number;
}): void {
  const { word, jobStart, jobWords } = layout;
  self.onmessage = ({ data: [memory, thread] }: MessageEvent<[WebAssembly.Memory, number]>) => {
    const control = new Int32Array(memory.buffer, 0, jobStart + jobWords);
    const kernels = new Map<number, (...words: number[]) => void>();
    const kernelOf = (address: number, bytes: number) => {
      const code = new Uint8Array(memory.buffer).slice(address, address + bytes);
      const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code), {
        env: { memory },
      });
      return exports.part as (...words: number[]) => void;
    };
    const compute = () => {
      const address = control[word.module] as number;
      const part = kernels.get(address) ?? kernelOf(address, control[word.moduleBytes] as number);
      kernels.set(address, part);
      const parts = control[word.parts] as number;
      for (;;) {
        const index = Atomics.add(control, word.next, 1);
        if (index >= parts) break;
        part(4 * jobStart, index, thread);
        Atomics.add(control, word.helped, 1);
      }
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
      try {
        if (Atomics.load(control, word.job) === job) compute();
      } catch (error) {
        Atomics.add(control, word.failed, 1);
        throw error;
      } finally {
        if (Atomics.sub(control, word.active, 1) === 1) Atomics.notify(control, word.active);
      }
      done = job;
    }
  };
}

/** The bits of a number, as a word of a job. */
function bitsOf(value: number): number {
  return at(new Int32Array(Float32Array.of(value).buffer), 0);
}
