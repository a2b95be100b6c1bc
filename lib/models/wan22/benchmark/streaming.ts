import { at, type Precision } from '../../../contract';
import type { Backend } from '../../../gpu';
import type { StreamCaseResult, StreamResult } from '../../../pipeline/benchmark';
import { denoise } from '../../../pipeline/denoise';
import type { LatentSize } from '../../../pipeline/latents';
import { allResident, type Residency } from '../../../pipeline/memory/plan';
import { gaussianNoise } from '../../../pipeline/noise';
import { createScheduler } from '../../../pipeline/schedulers';
import type { ByteSource } from '../../../weights/formats/source';
import { installComponent, openStoredComponent, type StoreFolder } from '../../../weights/store';
import type { ModelConfig } from '../config';
import { Wan22Denoiser } from '../denoiser';
import { componentRecipe } from '../recipes';
import { transformerTensors } from '../tensors';
import { tokensPerFrame } from '../tokens';
import { Transformer } from '../transformer';
import { readBlock } from '../transformer/weights';

const steps = 3;

interface StreamCase {
  readonly size: LatentSize;
  readonly precision: Precision;
}

/**
 * With 8-bit weights a block of this model computes about ten times as long as it is read. With plain
 * weights and few tokens it is a close call: on the CPU, which computes on the thread that reads, the
 * loop takes longer then.
 */
const cases: readonly StreamCase[] = [
  { size: { frames: 3, height: 12, width: 12 }, precision: 'int8' },
  { size: { frames: 3, height: 4, width: 4 }, precision: 'f32' },
];

/** A tiny model, wide enough that a block computes for a while. */
function widened(config: ModelConfig): ModelConfig {
  const transformer = { ...config.transformer, num_layers: 6, ffn_dim: 2048 };
  return {
    ...config,
    transformer: { ...transformer, num_attention_heads: 8, attention_head_dim: 64 },
  };
}

/**
 * Measures what streaming costs where one block's compute outlasts its read: random weights are
 * installed in a store, and the same loop runs with all blocks resident and with all of them streamed.
 *
 * @param base configuration of the tiny model
 * @param folder of the store; it is cleared afterwards
 */
export async function benchmarkStreaming(
  backend: Backend,
  base: ModelConfig,
  folder: StoreFolder,
): Promise<StreamResult> {
  const results: StreamCaseResult[] = [];
  for (const each of cases) results.push(await benchmarkCase(backend, base, folder, each));
  return { cases: results };
}

async function benchmarkCase(
  backend: Backend,
  base: ModelConfig,
  folder: StoreFolder,
  { size, precision }: StreamCase,
): Promise<StreamCaseResult> {
  const config = widened(base);
  const { transformer } = config;
  try {
    await install(config, folder, precision);
    const checkpoint = await openStoredComponent(folder);
    const frame = transformer.in_channels * size.height * size.width;
    const noise = gaussianNoise({ seed: 1, stream: 0, count: frame * size.frames });
    const text = gaussianNoise({ seed: 2, stream: 0, count: 20 * transformer.text_dim });
    const loop = async (residency: Residency) => {
      const model = await Transformer.load(
        backend,
        checkpoint,
        transformer,
        { precision },
        residency,
      );
      const ends: number[] = [];
      try {
        await denoise(backend, new Wan22Denoiser(model, 4096), {
          size,
          image: noise.subarray(0, frame),
          texts: [text, text],
          noise: () => noise,
          // The first step compiles and allocates; it is not counted.
          scheduler: createScheduler({ kind: 'unipc', steps: steps + 1, flowShift: 5 }),
          guidanceScale: 5,
          afterStep: () => {
            ends.push(performance.now());
            return false;
          },
        });
      } finally {
        model.dispose();
      }
      return (at(ends, ends.length - 1) - at(ends, 0)) / 1000;
    };
    const twoSets = { residentBlocks: 0, bufferSets: 2 };
    const pairs = [];
    // Alternating, so that a machine whose speed changes affects both alike.
    for (let i = 0; i < 3; i++) pairs.push([await loop(allResident), await loop(twoSets)] as const);
    const resident = median(pairs.map(([seconds]) => seconds));
    const streamed = median(pairs.map(([, seconds]) => seconds));
    const reads: number[] = [];
    for (let index = 0; index < transformer.num_layers; index++) {
      const start = performance.now();
      await readBlock(checkpoint, transformer, index, { precision });
      reads.push((performance.now() - start) / 1000);
    }
    const tokens = size.frames * tokensPerFrame(transformer, size);
    return {
      name: `${precision}, ${tokens} tokens`,
      resident,
      streamed,
      ratio: streamed / resident,
      readSeconds: median(reads),
      blockSeconds: resident / steps / transformer.num_layers,
    };
  } finally {
    await folder.clear();
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Writes random weights into the store, as an installation does. */
async function install(
  config: ModelConfig,
  folder: StoreFolder,
  precision: Precision,
): Promise<void> {
  const tensors = new Map<string, { file: ByteSource; storedName: string; entry: Entry }>();
  const parts: Float32Array[] = [];
  let end = 0;
  const bytes = () => new Uint8Array(data.buffer);
  const file: ByteSource = {
    name: 'random',
    size: 0,
    identity: 'random',
    sha256: null,
    read: async (start, stop) => bytes().slice(start, stop),
    async *stream(start, stop) {
      for (let at = start; at < stop; at += 2 ** 20) {
        yield bytes().subarray(at, Math.min(stop, at + 2 ** 20));
      }
    },
  };
  for (const [stream, [name, shape]] of [...transformerTensors(config.transformer)].entries()) {
    const count = shape.reduce((product, n) => product * n, 1);
    const values = gaussianNoise({ seed: 3, stream, count }).map((value) => value / 30);
    parts.push(values);
    const entry = { dtype: 'F32', shape, start: end, end: end + 4 * count };
    tensors.set(name, { file, storedName: name, entry });
    end = entry.end;
  }
  const data = new Float32Array(end / 4);
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  await installComponent({
    folder,
    component: 'transformer',
    precision,
    recipe: componentRecipe('transformer', config, precision),
    sources: [Object.assign(file, { size: end })],
    tensors,
    signal: new AbortController().signal,
  });
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}
