import type { Graph } from '../../graph';
import { type Backend, Scope } from '../backend';
import { BoundGraph, type Executor, type GraphBindings, type RowChunk } from '../executor';
import type { Compute, Dispatch, Kernel } from '../kernels';
import type { DeviceTensor } from '../tensor';
import { type Bin, binTensors, Lifetimes, placeSlots, type Slot } from './arena';
import { compileGraph } from './compile';
import { placeholder, placeholderBindings } from './placeholders';
import type { Listing } from './places';
import { checkFits, compileOn } from './refusal';
import type { CompiledPass, CompileOptions, Step } from './scope';

/** Where the values of a program lie. */
export type ProgramMemory = Pick<Listing, 'bins' | 'overflows'>;

/** Graphs as dispatches, and the memory that they share. They run one after the other, in any order. */
export class Program {
  readonly slots: readonly Slot[];
  /** Buffers of the values between dispatches. */
  readonly bins: readonly Bin[];
  /** What has to be compiled, with a graph that it is for. */
  readonly kernels: ReadonlyMap<Kernel, Graph>;
  readonly #passes = new Map<Graph, readonly CompiledPass[]>();

  /**
   * Compiles graphs; no device is needed for it.
   *
   * @param largestBuffer most bytes of a buffer
   * @throws Refusal where no kernel computes a call, or a binding would be larger than the device allows
   */
  constructor(
    graphs: Iterable<Graph>,
    readonly options: CompileOptions,
    largestBuffer = Number.POSITIVE_INFINITY,
  ) {
    const lifetimes = new Lifetimes();
    for (const graph of graphs) this.#passes.set(graph, compileGraph(graph, options, lifetimes));
    this.slots = lifetimes.slots;
    this.bins = placeSlots(this.slots, largestBuffer);
    this.kernels = this.#check();
  }

  /** Bytes of its buffers on a device: bins, and two counts of what was clamped. */
  get buffers(): readonly number[] {
    return [...this.bins.map(({ bytes }) => bytes), 16, 16];
  }

  get bytes(): number {
    return this.buffers.reduce((sum, bytes) => sum + bytes, 0);
  }

  /**
   * The dispatches of a graph in order, those of a chunk together.
   *
   * @throws TypeError for a graph that the program does not have, or where something is not bound
   */
  *list(
    graph: Graph,
    bound: GraphBindings,
    chunks: readonly RowChunk[],
    memory: ProgramMemory,
  ): Generator<readonly Dispatch[]> {
    const passes = this.#passes.get(graph);
    if (!passes) throw new TypeError(`${graph.name} is not of this program`);
    const bindings = new BoundGraph(graph, bound);
    const list = (steps: readonly Step[], chunk: RowChunk) =>
      steps.flatMap((step) => step({ ...memory, bindings, chunk }));
    const ofClass = (index: number) => ({ start: 0, count: 0, class: index });
    const classes = [...new Set(chunks.map((chunk) => chunk.class))].sort((a, b) => a - b);
    for (const { kind, before, steps } of passes) {
      if (kind === 'once') yield list(steps, ofClass(0));
      else if (kind === 'class') for (const index of classes) yield list(steps, ofClass(index));
      else {
        if (before.length > 0) yield list(before, ofClass(0));
        for (const chunk of chunks) yield list(steps, chunk);
      }
    }
  }

  /** As {@link list}, with tensors that have sizes only, for each of the ranks that a LoRA may have. */
  *listWithoutDevice(chunks = this.options.chunks): Generator<[Graph, readonly Dispatch[]]> {
    const memory = {
      bins: binTensors(this.bins, (dims) => placeholder('int32', dims)),
      overflows: placeholder('int32', [1]),
    };
    for (const graph of this.#passes.keys()) {
      for (const bound of placeholderBindings(graph, this.options)) {
        for (const jobs of this.list(graph, bound, chunks, memory)) yield [graph, jobs];
      }
    }
  }

  #check(): ReadonlyMap<Kernel, Graph> {
    const { chunks, limits } = this.options;
    // Chunks of one size and class differ by offsets only.
    const kinds = new Map(chunks.map((chunk) => [`${chunk.count} ${chunk.class}`, chunk]));
    const kernels = new Map<Kernel, Graph>();
    for (const [graph, jobs] of this.listWithoutDevice([...kinds.values()])) {
      for (const job of jobs) {
        kernels.set(job.kernel, graph);
        checkFits(graph, job, limits);
      }
    }
    return kernels;
  }

  /**
   * Compiles its kernels on a device.
   *
   * @throws Refusal for one that the device does not compile
   */
  compileOn(compute: Compute): Promise<void> {
    return compileOn(compute, this.kernels);
  }

  /**
   * Takes the program's memory on a device and compiles its kernels there.
   *
   * @throws Refusal for a kernel that the device does not compile
   * @throws KinoraError `OUT_OF_MEMORY`, `DEVICE_LOST`; then nothing stays on the device
   */
  open(backend: Backend): Promise<KernelExecutor> {
    return KernelExecutor.open(backend, this);
  }
}

/** A compiled program on a device: runs its graphs by kernels of our own. Values between two graphs are not kept. */
export class KernelExecutor implements Executor {
  /** What was counted up to the last {@link finish}. */
  #clamped = 0;

  private constructor(
    readonly backend: Backend,
    readonly compute: Compute,
    readonly program: Program,
    readonly scope: Scope,
    readonly memory: ProgramMemory & { readonly overflows: DeviceTensor<'int32'> },
    /** The count to be read: only floats are. */
    readonly overflowBits: DeviceTensor<'float32'>,
  ) {}

  /** As {@link Program.open}. */
  static async open(backend: Backend, program: Program): Promise<KernelExecutor> {
    const { compute } = backend;
    if (!compute) throw new TypeError(`${backend.kind} runs no kernels`);
    await program.compileOn(compute);
    const scope = new Scope(backend);
    try {
      const memory = {
        bins: binTensors(program.bins, (dims) => scope.tensor('int32', dims, 'activations')),
        overflows: scope.tensor('int32', [1], 'activations'),
      };
      const bits = scope.float32([1], 'activations');
      return new KernelExecutor(backend, compute, program, scope, memory, bits);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  async run(
    graph: Graph,
    bindings: GraphBindings,
    chunks: readonly RowChunk[] = [],
  ): Promise<void> {
    for (const jobs of this.program.list(graph, bindings, chunks, this.memory)) {
      await this.compute.dispatch(jobs);
    }
  }

  /**
   * Adds to the device's count the results that were clamped to f16. Nothing waits for the number: it arrives with
   * whatever is read next, or before.
   */
  async finish(): Promise<void> {
    const { backend, compute, memory, overflowBits } = this;
    backend.copy(memory.overflows, 0, overflowBits, 0, 1);
    const staged = backend.stage(overflowBits);
    const arrived = staged.then((bits) => {
      const [count = 0] = new Uint32Array(bits.buffer);
      compute.clamped.count += count - this.#clamped;
      this.#clamped = count;
    });
    // The next read fails as well, and is told of.
    arrived.catch(() => undefined);
  }

  dispose(): void {
    this.scope.dispose();
  }
}
