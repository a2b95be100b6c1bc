import { type Backend, type Bindings, type DeviceTensor, elementBytes } from '../../gpu';
import type { Compute, Dispatch } from '../../gpu/kernels';
import type { Graph } from '../../onnx';

/** One run of a graph, of a kernel of our own, or one copy between tensors. */
export interface RunRecord {
  /** The kernel's name for a kernel, `copy` for a copy. */
  readonly graph: string;
  /** From an idle device to an idle device; 0 for a copy. */
  readonly seconds: number;
  /** The weights that were bound. */
  readonly weights: readonly DeviceTensor[];
  /** Bytes of everything else that was bound, read or written. */
  readonly activationBytes: number;
  /** Known of kernels only. */
  readonly flop?: number;
}

/** A kernel is repeated for about so many seconds, but at most so often. */
const repeated = { seconds: 0.1, times: 64 };

/**
 * A backend that records what runs on it. It waits for each run, so that nothing is queued. A wait can take longer than
 * a kernel (33 ms through Vulkan on an NVIDIA H200): kernels are repeated, and what one more takes is their time.
 */
export interface Meter {
  readonly backend: Backend;
  /** The runs since the last call. */
  take(): RunRecord[];
}

/** Wraps a backend in a meter. */
export function metered(backend: Backend): Meter {
  let records: RunRecord[] = [];
  const timed = async (run: () => Promise<void>) => {
    await backend.settle();
    const start = performance.now();
    await run();
    await backend.settle();
    return (performance.now() - start) / 1000;
  };
  const { compute } = backend;
  const own: Partial<Backend> = {
    ...(compute && {
      compute: {
        features: compute.features,
        limits: compute.limits,
        ...(compute.matrices && { matrices: compute.matrices }),
        ...(compute.subgroupSizes && { subgroupSizes: compute.subgroupSizes }),
        rates: compute.rates,
        used: compute.used,
        clamped: compute.clamped,
        peak: compute.peak,
        get unfinished() {
          return compute.unfinished;
        },
        compile: (...of) => compute.compile(...of),
        async dispatch(jobs) {
          for (const job of jobs) {
            const run = (times: number) =>
              timed(() => compute.dispatch(Array.from({ length: times }, () => job)));
            const once = await run(1);
            const more = Math.min(Math.floor(repeated.seconds / once), repeated.times);
            const all = more > 0 ? await run(1 + more) : once;
            // Where other programs disturb the first run it can take longer than all.
            const seconds = all > once ? (all - once) / more : all / (1 + more);
            records.push({ graph: job.kernel.name, seconds, flop: job.flops, ...bytesOf(job) });
          }
        },
      } satisfies Compute,
    }),
    copy(source, sourceOffset, target, targetOffset, count) {
      const activationBytes = 2 * count * elementBytes[source.dtype];
      records.push({ graph: 'copy', seconds: 0, weights: [], activationBytes });
      backend.copy(source, sourceOffset, target, targetOffset, count);
    },
    async run(graph: Graph, inputs: Bindings, outputs: Bindings) {
      const seconds = await timed(() => backend.run(graph, inputs, outputs));
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

/** What a kernel reads and writes. */
function bytesOf({ operands }: Dispatch): Pick<RunRecord, 'weights' | 'activationBytes'> {
  const bound = Object.values(operands).map((operand) => {
    if (!('tensor' in operand)) return { tensor: operand, bytes: operand.bytes };
    const { tensor, byteOffset = 0, byteSize } = operand;
    return { tensor, bytes: byteSize ?? tensor.bytes - byteOffset };
  });
  return {
    weights: bound.map(({ tensor }) => tensor).filter(({ category }) => category === 'weights'),
    activationBytes: bound
      .filter(({ tensor }) => tensor.category !== 'weights')
      .reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
