import type { Precision } from '../../../contract';
import { type Backend, Scope } from '../../../gpu';
import { type Meter, metered, type RunRecord } from '../../../pipeline/benchmark/meter';
import { decoderBlocks, type ModelConfig, type TransformerConfig } from '../config';
import { textEncoderTensors, transformerTensors, vaeTensors } from '../tensors';
import { encodePrompts } from '../text-encoder';
import { type LatentSize, tokensPerFrame } from '../tokens';
import { createClipMemory, Transformer } from '../transformer';
import { Workspace } from '../vae/layers';
import { NetworkLoader } from '../vae/network';
import { loadUpBlock } from '../vae/up-blocks';
import { VaeLoader } from '../vae/weights';
import { encoderLayerFlops, transformerBlockFlops, upBlockFlops } from './flops';
import { noise, syntheticCheckpoint } from './synthetic';

/** What one stage took: the median of several passes, for one layer of it. */
export interface StageResult {
  readonly stage: string;
  /** Passes that were measured. */
  readonly passes: number;
  readonly seconds: number;
  readonly flop: number;
  readonly flopPerSecond: number;
  /** Bytes of the weights that it uses: what has to be uploaded for it. */
  readonly weightBytes: number;
  /** Bytes of everything else that graphs read and wrote, without what stays inside a graph. */
  readonly activationBytes: number;
  /** Highest live bytes on the device, of everything that the stage holds. */
  readonly peakBytes: number;
}

export interface StageOptions {
  readonly layers: number;
  readonly tokens: number;
  /** Rows of the prompt that the transformer sees, and of the text encoder. */
  readonly textTokens: number;
  /** Size of the frames that enter the VAE's level. */
  readonly latent: { readonly height: number; readonly width: number };
  /** Level of the VAE's decoder, from 0. */
  readonly level: number;
  readonly precision: Precision;
  readonly passes: number;
  /** Chunks of the transformer, at most. */
  readonly maxChunkTokens: number;
}

type Stage = (
  backend: Backend,
  config: ModelConfig,
  options: StageOptions,
) => Promise<StageResult[]>;

/** A first pass that takes longer counts: compiling is a small part of it. */
const longPassSeconds = 5;

/** Runs `pass` once to compile and then `passes` times; the records of each counted pass. */
async function measure(
  meter: Meter,
  passes: number,
  pass: () => Promise<void>,
): Promise<RunRecord[][]> {
  const timed = async () => {
    await pass();
    await meter.backend.settle();
    return meter.take();
  };
  meter.take();
  const first = await timed();
  const seconds = first.reduce((sum, record) => sum + record.seconds, 0);
  if (seconds > longPassSeconds) return [first];
  const all: RunRecord[][] = [];
  for (let i = 0; i < passes; i++) all.push(await timed());
  return all;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Sums the runs of some graphs in each pass. */
function summarise(
  stage: string,
  passes: readonly (readonly RunRecord[])[],
  belongs: (graph: string) => boolean,
  { flop, layers, peakBytes }: { flop: number; layers: number; peakBytes: number },
): StageResult {
  const own = passes.map((records) => records.filter(({ graph }) => belongs(graph)));
  const sum = (records: readonly RunRecord[], part: 'seconds' | 'activationBytes') =>
    records.reduce((total, run) => total + run[part], 0) / layers;
  const seconds = median(own.map((records) => sum(records, 'seconds')));
  const weights = new Set(own[0]?.flatMap((run) => run.weights));
  const weightBytes = [...weights].reduce((total, { bytes }) => total + bytes, 0) / layers;
  return {
    stage,
    passes: passes.length,
    seconds,
    flop,
    flopPerSecond: flop / seconds,
    weightBytes,
    activationBytes: sum(own[0] ?? [], 'activationBytes'),
    peakBytes,
  };
}

/**
 * A clip of as many tokens: whole frames of 1280×704 where they fit, else two frames, the first held.
 *
 * @throws RangeError for an odd number of tokens
 */
export function clipOfTokens(config: TransformerConfig, tokens: number): LatentSize {
  const [, patchHeight, patchWidth] = config.patch_size;
  const native = { frames: 1, height: 44, width: 80 };
  const perFrame = tokensPerFrame(config, native);
  if (tokens % perFrame === 0 && tokens > perFrame) {
    return { ...native, frames: tokens / perFrame };
  }
  const half = tokens / 2;
  if (!Number.isInteger(half)) throw new RangeError(`${tokens} tokens are no two equal frames`);
  let rows = Math.floor(Math.sqrt(half));
  while (half % rows !== 0) rows -= 1;
  return { frames: 2, height: rows * patchHeight, width: (half / rows) * patchWidth };
}

/** One block of the transformer, by graph and as a whole; the mean over the layers. */
export const benchTransformer: Stage = async (backend, config, options) => {
  const { layers, tokens, textTokens } = options;
  const transformer = { ...config.transformer, num_layers: layers };
  const meter = metered(backend);
  backend.resetPeaks();
  const checkpoint = syntheticCheckpoint(transformerTensors(transformer), options.precision);
  const model = await Transformer.load(meter.backend, checkpoint, transformer, options);
  const scope = new Scope(meter.backend);
  const size = clipOfTokens(transformer, tokens);
  const { maxChunkTokens } = options;
  const clipOptions = { heldFrames: 1, maxChunkTokens, guided: false };
  const clip = createClipMemory(meter.backend, transformer, size, clipOptions);
  try {
    const width = transformer.in_channels * 4;
    const latents = scope.float32([tokens, width], 'latents', noise('tokens', tokens * width, 1));
    const velocity = scope.float32([tokens, width], 'latents');
    const held = model.createTimeEmbedding(scope);
    const free = model.createTimeEmbedding(scope);
    await model.embedTime(0, held);
    await model.embedTime(700, free);
    const embeds = noise('text', textTokens * transformer.text_dim, 1);
    const text = await model.prepareText(embeds, clip);
    const branches = [{ text, velocity }];
    const passes = await measure(meter, options.passes, () =>
      model.velocity(clip, latents, { held, free }, branches),
    );
    text.dispose();
    const flops = transformerBlockFlops(transformer, tokens, textTokens);
    const { peakBytes } = backend;
    const graphs = Object.entries(flops);
    const total = graphs.reduce((sum, [, flop]) => sum + flop, 0);
    const names = new Set([...Object.keys(flops), 'copy']);
    const whole = { flop: total, layers, peakBytes };
    return [
      ...graphs.map(([graph, flop]) =>
        summarise(graph, passes, (name) => name === graph, { flop, layers, peakBytes }),
      ),
      summarise('transformer block', passes, (name) => names.has(name), whole),
    ];
  } finally {
    clip.dispose();
    scope.dispose();
    model.dispose();
    await backend.releaseSessions();
  }
};

/** One layer of the text encoder, its weights loaded anew in each pass, as the engine does. */
export const benchTextEncoder: Stage = async (backend, config, options) => {
  const encoder = { ...config.text_encoder, num_layers: 1 };
  const meter = metered(backend);
  backend.resetPeaks();
  const checkpoint = syntheticCheckpoint(textEncoderTensors(encoder), options.precision);
  const prompt = Array.from({ length: options.textTokens }, (_, i) => i + 3);
  const passes = await measure(meter, options.passes, async () => {
    await encodePrompts(meter.backend, checkpoint, encoder, [prompt], options);
  });
  const flop = encoderLayerFlops(encoder, options.textTokens);
  const { peakBytes } = backend;
  await backend.releaseSessions();
  const graph = 'text-encoder-layer';
  return [summarise(graph, passes, (name) => name === graph, { flop, layers: 1, peakBytes })];
};

/** One level of the VAE's decoder, for one frame with a past. */
export const benchUpBlock: Stage = async (backend, config, options) => {
  const block = decoderBlocks(config.vae)[options.level];
  if (!block) throw new RangeError(`the VAE has no level ${options.level}`);
  const { height, width } = options.latent;
  const meter = metered(backend);
  backend.resetPeaks();
  const checkpoint = syntheticCheckpoint(vaeTensors(config.vae), 'f32');
  const workspace = new Workspace(meter.backend);
  const scope = new Scope(meter.backend);
  try {
    const parts = new NetworkLoader(workspace, new VaeLoader(scope, checkpoint), 3);
    const { resnets, upsample, time } = await loadUpBlock(parts, block);
    const frame = noise('frame', height * width * block.in_dim, 1);
    const { scratch } = workspace;
    const passes = await measure(meter, options.passes, async () => {
      const input = workspace.image(height, width, block.in_dim);
      meter.backend.write(input, frame);
      let x = input;
      for (const resnet of resnets) x = await resnet.step(x, x === input);
      if (upsample && !time) scratch.give(await upsample.step(x, input, 0));
      for (const part of time ? ([0, 1] as const) : []) {
        const y = (await time?.[part].step(x)) ?? x;
        if (upsample) scratch.give(await upsample.step(y, input, part));
        scratch.give(y);
      }
      scratch.give(x, input);
    });
    const flop = upBlockFlops(block, height * width);
    const { peakBytes } = backend;
    const name = `VAE up block ${options.level}, ${height}×${width}`;
    return [summarise(name, passes, () => true, { flop, layers: 1, peakBytes })];
  } finally {
    workspace.dispose();
    scope.dispose();
    await backend.releaseSessions();
  }
};
