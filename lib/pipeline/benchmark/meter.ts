import { type Backend, type Bindings, type DeviceTensor, elementBytes } from '../../gpu';
import type { Graph } from '../../onnx';

/** One run of a graph, or one copy between tensors. */
export interface RunRecord {
  /** `copy` for a copy. */
  readonly graph: string;
  /** From an idle device to an idle device; 0 for a copy. */
  readonly seconds: number;
  /** The weights that were bound. */
  readonly weights: readonly DeviceTensor[];
  /** Bytes of everything else that was bound, read or written. */
  readonly activationBytes: number;
}

/** A backend that records what runs on it. It waits for each run, so that nothing is queued. */
export interface Meter {
  readonly backend: Backend;
  /** The runs since the last call. */
  take(): RunRecord[];
}

/** Wraps a backend in a meter. */
export function metered(backend: Backend): Meter {
  let records: RunRecord[] = [];
  const own: Partial<Backend> = {
    copy(source, sourceOffset, target, targetOffset, count) {
      const activationBytes = 2 * count * elementBytes[source.dtype];
      records.push({ graph: 'copy', seconds: 0, weights: [], activationBytes });
      backend.copy(source, sourceOffset, target, targetOffset, count);
    },
    async run(graph: Graph, inputs: Bindings, outputs: Bindings) {
      await backend.settle();
      const start = performance.now();
      await backend.run(graph, inputs, outputs);
      await backend.settle();
      const seconds = (performance.now() - start) / 1000;
      const bound = [...Object.values(inputs), ...Object.values(outputs)];
      const weights = bound.filter(({ category }) => category === 'weights');
      const activationBytes = bound
        .filter(({ category }) => category !== 'weights')
        .reduce((sum, { bytes }) => sum + bytes, 0);
      records.push({ graph: graph.name, seconds, weights, activationBytes });
    },
  };
  return {
    // Methods of the backend need the backend itself as `this`.
    backend: new Proxy(backend, {
      get(target, key) {
        const value = Reflect.get(own, key) ?? Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
      set: (target, key, value) => Reflect.set(target, key, value, target),
    }),
    take() {
      const taken = records;
      records = [];
      return taken;
    },
  };
}
