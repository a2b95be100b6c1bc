import { type Backend, Scope } from '../../../gpu';
import {
  type BenchmarkOptions,
  type BenchmarkStage,
  measure,
  type StageResult,
  summarise,
} from '../../../pipeline/benchmark';
import { metered } from '../../../pipeline/benchmark/meter';
import type { LatentSize } from '../../../pipeline/latents';
import { decoderBlocks, type ModelConfig, type TransformerConfig } from '../config';
import { textEncoderTensors, transformerTensors, vaeTensors } from '../tensors';
import { encodePrompts } from '../text-encoder';
import { createTinyDecoder } from '../tiny-decoder';
import { tokensPerFrame } from '../tokens';
import { Transformer } from '../transformer';
import { Workspace } from '../vae/layers';
import { NetworkLoader } from '../vae/network';
import { loadUpBlock } from '../vae/up-blocks';
import { VaeLoader } from '../vae/weights';
import { encoderLayerFlops, tinyDecoderFlops, transformerBlockFlops, upBlockFlops } from './flops';
import { noise, syntheticCheckpoint } from './synthetic';
import { publishedTinyDecoder } from './work';

type Stage = (
  backend: Backend,
  config: ModelConfig,
  options: BenchmarkOptions,
) => Promise<StageResult[]>;

/**
 * A clip of as many tokens: whole frames of 1280×704 where they fit, else two frames, the first of them conditioning.
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
const benchTransformer: Stage = async (backend, config, options) => {
  const { layers, tokens, textTokens } = options;
  const transformer = { ...config.transformer, num_layers: layers };
  const meter = metered(backend);
  backend.resetPeaks();
  const checkpoint = syntheticCheckpoint(transformerTensors(transformer), options.precision);
  const model = await Transformer.load(meter.backend, checkpoint, transformer, options);
  const scope = new Scope(meter.backend);
  const size = clipOfTokens(transformer, tokens);
  const { maxChunkTokens } = options;
  const clipOptions = { conditioningFrames: 1, maxChunkTokens, guided: false };
  const clip = model.createClip(size, clipOptions);
  try {
    const width = transformer.in_channels * 4;
    const latents = scope.float32([tokens, width], 'latents', noise('tokens', tokens * width, 1));
    const velocity = scope.float32([tokens, width], 'latents');
    const conditioning = model.createTimeEmbedding(scope);
    const free = model.createTimeEmbedding(scope);
    await model.embedTime(0, conditioning);
    await model.embedTime(700, free);
    const embeds = noise('text', textTokens * transformer.text_dim, 1);
    const text = await model.prepareText(embeds, clip);
    const branches = [{ text, velocity }];
    const passes = await measure(meter, options.passes, () =>
      model.velocity(clip, latents, { conditioning, noisy: free }, branches),
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
const benchTextEncoder: Stage = async (backend, config, options) => {
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
const benchUpBlock: Stage = async (backend, config, options) => {
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

/** The published tiny decoder with random weights, on two latent frames. */
export async function measureTinyDecoder(
  backend: Backend,
  config: ModelConfig,
  { latent, passes: count }: BenchmarkOptions,
): Promise<StageResult> {
  const meter = metered(backend);
  backend.resetPeaks();
  const shapes = publishedTinyDecoder(config);
  const size = { latentHeight: latent.height, latentWidth: latent.width };
  const checkpoint = syntheticCheckpoint(shapes, 'f32');
  const decoder = await createTinyDecoder(meter.backend, checkpoint, size);
  try {
    const frame = noise('frame', config.vae.z_dim * latent.height * latent.width, 1);
    const passes = await measure(meter, count, async () => {
      for await (const _ of decoder.decodeClip([frame, frame]));
    });
    const flop = tinyDecoderFlops(shapes, { frames: 2, ...latent });
    const { peakBytes } = backend;
    return summarise('tiny decoder', passes, () => true, { flop, layers: 1, peakBytes });
  } finally {
    decoder.dispose();
    await backend.releaseSessions();
  }
}

/** One block of the transformer, one layer of the text encoder and one level of the VAE's decoder. */
export function wan22BenchmarkStages(
  config: ModelConfig,
  options: BenchmarkOptions,
): BenchmarkStage[] {
  return Object.entries({
    transformer: benchTransformer,
    'text encoder': benchTextEncoder,
    'VAE level': benchUpBlock,
  }).map(([name, measure]) => ({ name, run: (backend) => measure(backend, config, options) }));
}
