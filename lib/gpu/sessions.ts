import type * as Ort from 'onnxruntime-web/webgpu';
import type { Graph } from '../onnx';
import type { Runtime } from './runtime';

/** Compiled graphs, one session per distinct graph. Called from inside the serial queue only. */
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
