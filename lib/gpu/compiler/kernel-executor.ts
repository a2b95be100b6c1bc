import type { Graph } from '../../graph';
import { type Backend, Scope } from '../backend';
import type { Executor, GraphBindings, RowChunk } from '../executor';
import type { Compute } from '../kernels';
import type { DeviceTensor } from '../tensor';
import type { Program, ProgramMemory } from './program';

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
        bins: new Map(
          program.bins.map((bin) => [
            bin,
            scope.tensor('int32', [bin.bytes / 4], 'activations') as DeviceTensor,
          ]),
        ),
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
