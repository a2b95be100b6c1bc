import { at } from '../contract';
import type { Call, Dim, Graph } from '../onnx';
import type { Backend, Bindings, DeviceTensor } from './backend';
import type { KernelChoice } from './kernels/variants';
import { TensorPool } from './pool';

/** Kernels that a backend has for named calls (`lib/onnx/calls.ts`). */
export interface Kernels {
  /** What the kernels of whole stages are made from; null where there are kernels for single calls only. */
  readonly choice: KernelChoice | null;
  /**
   * Computes a call; resolves when the work is submitted.
   *
   * @param inputs by the call's roles
   * @returns false where there is no kernel for this call: then the runtime computes its graph
   */
  run(call: Call, inputs: Bindings, output: DeviceTensor<'float32'>): Promise<boolean>;
}

/** Runs graphs part by part, so that kernels can answer the named calls in them. */
export class PartRunner {
  readonly #intermediates: TensorPool;

  constructor(readonly backend: Backend) {
    this.#intermediates = new TensorPool(backend, 'runtime');
  }

  /** As `Backend.run`, for a graph with named calls. */
  async run(kernels: Kernels, graph: Graph, inputs: Bindings, outputs: Bindings): Promise<void> {
    const parts = graph.parts?.() ?? [];
    const symbols = symbolsOf(graph, { ...inputs, ...outputs });
    const lastUse = new Map<string, number>();
    for (const [index, part] of parts.entries()) {
      for (const name of Object.values(part.inputs)) lastUse.set(name, index);
    }
    const tensors = new Map(Object.entries({ ...inputs, ...outputs }));
    const borrowed = new Map<string, DeviceTensor<'float32'>>();
    const bind = (ports: Readonly<Record<string, string>>): Bindings =>
      Object.fromEntries(
        Object.entries(ports).map(([port, name]) => [port, tensorNamed(tensors, name)]),
      );
    try {
      for (const [index, part] of parts.entries()) {
        for (const { name, dtype, dims } of part.results) {
          if (tensors.has(name)) continue;
          if (dtype !== 'float32') throw new TypeError(`${graph.name}: ${name} is ${dtype}`);
          const tensor = this.#intermediates.take(dims.map((size) => runtimeSize(size, symbols)));
          borrowed.set(name, tensor);
          tensors.set(name, tensor);
        }
        const [read, written] = [bind(part.inputs), bind(part.outputs)];
        const { y } = written;
        const answered = part.call && (await kernels.run(part.call, read, float32(y)));
        if (!answered) await this.backend.run(part.graph, read, written);
        // Work keeps its order, so what comes next may overwrite what was read last.
        for (const [name, tensor] of borrowed) {
          if ((lastUse.get(name) ?? index) > index) continue;
          this.#intermediates.give(tensor);
          borrowed.delete(name);
        }
      }
    } finally {
      this.#intermediates.give(...borrowed.values());
    }
  }

  /** Frees the intermediates. */
  release(): void {
    this.#intermediates.dispose();
  }
}

function tensorNamed(tensors: ReadonlyMap<string, DeviceTensor>, name: string): DeviceTensor {
  const tensor = tensors.get(name);
  if (!tensor) throw new TypeError(`no part of the graph makes ${name}`);
  return tensor;
}

function float32(tensor: DeviceTensor | undefined): DeviceTensor<'float32'> {
  if (tensor?.dtype !== 'float32') throw new TypeError('a call gives a float32 tensor');
  return tensor as DeviceTensor<'float32'>;
}

/** What each name of a symbolic dimension stands for in this run. */
export function symbolsOf(graph: Graph, bindings: Bindings): Map<string, number> {
  const symbols = new Map<string, number>();
  for (const port of [...graph.inputs, ...graph.outputs]) {
    const bound = bindings[port.name];
    port.dims.forEach((dim, axis) => {
      if (typeof dim === 'string' && bound) symbols.set(dim, at(bound.dims, axis));
    });
  }
  return symbols;
}

/**
 * A size, a name, or a sum of both as `addDims` writes it.
 *
 * @throws TypeError for a name that no input or output of the graph has
 */
export function runtimeSize(dim: Dim, symbols: ReadonlyMap<string, number>): number {
  if (typeof dim === 'number') return dim;
  const size =
    symbols.get(dim) ??
    dim.split('+').reduce((sum, part) => sum + (symbols.get(part) ?? Number(part)), 0);
  if (Number.isNaN(size)) throw new TypeError(`the size ${dim} is not known`);
  return size;
}
