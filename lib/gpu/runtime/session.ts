import type * as Ort from 'onnxruntime-web/webgpu';
import type { Graph } from '../../onnx';

/** ONNX Runtime's module; all entry points have the same surface. */
export type Runtime = typeof Ort;

let loading: Promise<Runtime> | undefined;

/**
 * Loads the build for this browser: JSPI where WebAssembly can be suspended (smaller, less overhead),
 * else Asyncify. Both have the WebGPU and the CPU provider (README, "Builds").
 */
export function browserRuntime(): Promise<Runtime> {
  loading ??= (
    'Suspending' in WebAssembly ? import('onnxruntime-web/jspi') : import('onnxruntime-web/webgpu')
  ).then((runtime) => {
    runtime.env.logLevel = 'error';
    return runtime as Runtime;
  });
  return loading;
}

/**
 * Runs jobs one after another, in the order in which they were added. Two overlapping runs of ONNX
 * Runtime hang the thread, so that each backend has one queue for all its calls into the runtime
 * (README, "One queue").
 */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  /** Resolves or rejects as the job does; a failed job does not stop the next ones. */
  run<T>(job: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(job);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}

/** Compiled graphs, one session per distinct graph. To be called from jobs of the {@link SerialQueue} only. */
export class SessionCache {
  readonly #sessions = new Map<string, Ort.InferenceSession>();

  constructor(
    readonly runtime: Runtime,
    readonly options: Ort.InferenceSession.SessionOptions,
  ) {}

  async get(graph: Graph): Promise<Ort.InferenceSession> {
    const known = this.#sessions.get(graph.key);
    if (known) return known;
    const session = await this.runtime.InferenceSession.create(graph.bytes, this.options);
    this.#sessions.set(graph.key, session);
    return session;
  }

  async release(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    for (const session of sessions) await session.release();
  }
}
