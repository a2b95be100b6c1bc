import * as Comlink from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { type Backend, createBackend } from '../lib/gpu';
import { benchmarkStreaming, type StreamResult } from '../lib/models/wan22/benchmark/streaming';
import type { ModelConfig } from '../lib/models/wan22/config';
import { benchmarkModel, type StageOptions, type StageResult } from '../lib/pipeline/benchmark';
import { opfsFolder } from '../lib/weights/store';

/** The benchmark in a browser: the worker of `npm run bench -- model --backend webgpu`. */
const bench = {
  /** Measures a model's layers with random weights on the GPU. */
  async run(
    config: ModelConfig,
    options: StageOptions,
    onResult: (result: StageResult) => void,
  ): Promise<StageResult[]> {
    const backend = await createBackend('webgpu');
    try {
      return await benchmarkModel(backend, config, options, onResult);
    } finally {
      await backend.dispose();
    }
  },
  /** Measures what it costs to stream the transformer's blocks from OPFS. */
  async stream(config: ModelConfig, kind: Backend['kind']): Promise<StreamResult> {
    const backend = await createBackend(kind);
    try {
      return await benchmarkStreaming(backend, config, opfsFolder('bench/stream'));
    } finally {
      await backend.dispose();
    }
  },
};

/** What the page sees of the worker. */
export type BenchApi = typeof bench;

installErrorTransfer();
Comlink.expose(bench);
