import type { Backend } from '../../../gpu';
import { imageFlops } from '../../../graph';
import {
  type BenchmarkOptions,
  type BenchmarkStage,
  measure,
  type StageResult,
  summarise,
} from '../../../pipeline/benchmark';
import { metered, type RunRecord } from '../../../pipeline/benchmark/meter';
import { textEncoderTensors } from '../../umt5/tensors';
import { encodePrompts } from '../../umt5/text-encoder';
import { decoderBlocks } from '../config';
import { encoderLayerFlops, transformerBlockFlops } from '../flops';
import type { WanConfig } from '../model';
import { vaeTensors } from '../tensors';
import { createTinyDecoder } from '../tiny-decoder';
import { publishedTinyDecoder } from '../tiny-decoder/published';
import { tinyGraphs } from '../tiny-decoder/weights';
import type { TransformerWeights } from '../transformer';
import { decodeCost } from '../vae';
import { imageKernels, openImages } from '../vae/images';
import { decoderLevel } from '../vae/network';
import { frameOfTokens, openBlocks } from './blocks';
import { noise, syntheticCheckpoint } from './synthetic';

type Stage = (
  backend: Backend,
  config: WanConfig,
  options: BenchmarkOptions,
) => Promise<StageResult[]>;

/** One block of the transformer, by graph and as a whole; the mean over the layers. */
const benchTransformer: Stage = async (backend, config, options) => {
  const { layers, tokens, textTokens } = options;
  const meter = metered(backend);
  backend.resetPeaks();
  const blocks = await openBlocks(meter.backend, config, options);
  try {
    const passes = await measure(meter, options.passes, blocks.pass);
    const { peakBytes } = backend;
    const { kernels } = meter.backend;
    if (kernels) return summariseKernels(passes, blocks.weights, { layers, peakBytes });
    const flops = transformerBlockFlops(config.transformer, tokens, textTokens);
    const graphs = Object.entries(flops);
    const total = graphs.reduce((sum, [, flop]) => sum + flop, 0);
    // A graph runs in passes, `self-attention/0`, ….
    const isOf = (graph: string) => (name: string) => name.startsWith(`${graph}/`);
    const whole = { flop: total, layers, peakBytes };
    return [
      ...graphs.map(([graph, flop]) =>
        summarise(graph, passes, isOf(graph), { flop, layers, peakBytes }),
      ),
      summarise(
        'transformer block',
        passes,
        (name) => name === 'copy' || Object.keys(flops).some((graph) => isOf(graph)(name)),
        whole,
      ),
    ];
  } finally {
    await blocks.dispose();
  }
};

/** By kernel, and for the block as a whole: without embedding and head, which a pass has once. */
function summariseKernels(
  passes: readonly (readonly RunRecord[])[],
  { patchEmbedding, projOut }: TransformerWeights,
  { layers, peakBytes }: { readonly layers: number; readonly peakBytes: number },
): StageResult[] {
  const around = new Set(
    [patchEmbedding, projOut].flatMap(({ tensors }) => Object.values(tensors)),
  );
  const blocks = passes.map((records) =>
    records.filter(({ weights }) => !weights.some((weight) => around.has(weight))),
  );
  const [first = []] = blocks;
  const summary = (stage: string, belongs: (name: string) => boolean) => {
    const own = first.filter(({ graph }) => belongs(graph));
    const flop = own.reduce((sum, record) => sum + (record.flop ?? 0), 0) / layers;
    return summarise(stage, blocks, belongs, { flop, layers, peakBytes });
  };
  const names = [...new Set(first.map(({ graph }) => graph))];
  return [
    ...names.map((kernel) => summary(kernel, (name) => name === kernel)),
    summary('transformer block', () => true),
  ];
}

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
  // Kernels go by their own names; all but one of them, the norm behind the layers, are of the layer.
  const byKernels = Boolean(meter.backend.kernels);
  const belongs = (name: string) => byKernels || name.startsWith(`${graph}/`);
  return [summarise(graph, passes, belongs, { flop, layers: 1, peakBytes })];
};

/** One level of the VAE's decoder, for one frame; with a past, unless our kernels take long for the first one. */
const benchUpBlock: Stage = async (backend, config, options) => {
  const block = decoderBlocks(config.vae)[options.level];
  if (!block) throw new RangeError(`the VAE has no level ${options.level}`);
  const { height, width } = options.latent ?? frameOfTokens(config.transformer, options.tokens);
  const meter = metered(backend);
  backend.resetPeaks();
  const checkpoint = syntheticCheckpoint(vaeTensors(config.vae), 'f32');
  const graph = decoderLevel(block, height, width);
  const images = await openImages(meter.backend, [graph], checkpoint, {});
  try {
    const x = noise('frame', height * width * block.in_dim, 1);
    const kernels = imageKernels(meter.backend.kernels);
    // Our convolutions compute what a frame has of a past: two frames of it from the third one on.
    const warmUps = kernels ? 2 : 1;
    const pass = async () => {
      for await (const _ of images.frames(graph, { x }));
    };
    const passes = await measure(meter, options.passes, pass, warmUps);
    const done = passes[0]?.reduce((sum, record) => sum + (record.flop ?? 0), 0);
    const flop = (kernels && done) || imageFlops(graph);
    const { peakBytes } = backend;
    const name = `VAE up block ${options.level}, ${height}×${width}`;
    return [summarise(name, passes, () => true, { flop, layers: 1, peakBytes })];
  } finally {
    images.dispose();
    await backend.releaseSessions();
  }
};

/** The published tiny decoder with random weights, on two latent frames. */
export async function measureTinyDecoder(
  backend: Backend,
  config: WanConfig,
  { latent, passes: count }: Required<Pick<BenchmarkOptions, 'latent' | 'passes'>>,
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
    const flop = decodeCost(tinyGraphs(shapes, size), 2).flops;
    const { peakBytes } = backend;
    return summarise('tiny decoder', passes, () => true, { flop, layers: 1, peakBytes });
  } finally {
    decoder.dispose();
    await backend.releaseSessions();
  }
}

/** One block of the transformer, one layer of the text encoder and one level of the VAE's decoder. */
export function wanBenchmarkStages(config: WanConfig, options: BenchmarkOptions): BenchmarkStage[] {
  return Object.entries({
    transformer: benchTransformer,
    'text encoder': benchTextEncoder,
    'VAE level': benchUpBlock,
  }).map(([name, measure]) => ({ name, run: (backend) => measure(backend, config, options) }));
}
