import * as Comlink from 'comlink';
import { KinoraError } from '../lib/contract';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { appUrl } from '../lib/contract/site';
import { type Backend, createBackend } from '../lib/gpu';
import { assignKernels, setSparse } from '../lib/gpu/kernels/assign';
import {
  type LanguageModelBenchOptions,
  type LanguageModelResult,
  measureLanguageModel,
} from '../lib/language-model/benchmark';
import { modelFamilies } from '../lib/models';
import {
  type BenchmarkOptions,
  benchmarkModel,
  type StageResult,
  type StreamResult,
} from '../lib/pipeline/benchmark';
import { familyOf, fetchManifest } from '../lib/pipeline/open';
import { checkerBenchmark } from '../lib/safety/benchmark';
import { opfsFolder } from '../lib/weights/store';

const benchFile = 'bench-optimizer.gguf';

/** The benchmark in a browser: the worker of `npm run bench -- model --backend webgpu`. */
const bench = {
  /** Measures the layers of a listed model with random weights on the GPU. */
  async run(
    model: string,
    options: BenchmarkOptions,
    onResult: (result: StageResult) => void,
  ): Promise<StageResult[]> {
    const { family, configuration } = await open(model);
    const backend = await createBackend('webgpu');
    try {
      await assignKernels(backend, options.kernels);
      setSparse(backend, options.sparse);
      const stages = await family.benchmarkStages(configuration, options);
      const all = [...stages, checkerBenchmark(options)];
      return await benchmarkModel(backend, all, onResult);
    } finally {
      await backend.dispose();
    }
  },
  /** Measures what it costs to stream the denoiser's blocks from OPFS. */
  async stream(model: string, kind: Backend['kind']): Promise<StreamResult> {
    const { family, configuration } = await open(model);
    const backend = await createBackend(kind);
    try {
      return await family.benchmarkStreaming(backend, configuration, opfsFolder('bench/stream'));
    } finally {
      await backend.dispose();
    }
  },
  /** Measures a language model, which is copied to OPFS for it. */
  async optimizer(file: File, options: LanguageModelBenchOptions): Promise<LanguageModelResult> {
    const handle = await (await navigator.storage.getDirectory()).getFileHandle(benchFile, {
      create: true,
    });
    try {
      await file.stream().pipeTo(await handle.createWritable());
      return await measureLanguageModel(await handle.getFile(), options);
    } finally {
      await (await navigator.storage.getDirectory()).removeEntry(benchFile);
    }
  },
};

async function open(id: string) {
  const { manifest, folder } = await fetchManifest(id, appUrl('/models/'));
  if (!folder) {
    const sentence = `The model "${manifest.name}" is listed without its configuration.`;
    throw new KinoraError('MODEL_FILE_MISSING', sentence);
  }
  return { family: familyOf(modelFamilies, manifest), configuration: folder };
}

/** What the page sees of the worker. */
export type BenchApi = typeof bench;

installErrorTransfer();
Comlink.expose(bench);
