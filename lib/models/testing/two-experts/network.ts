import { z } from 'zod';
import { type Backend, type DeviceTensor, openExecutor, Scope } from '../../../gpu';
import { add, Graph, gelu, linear, memoised } from '../../../graph';
import type { Checkpoint, ModelFolder } from '../../../weights';
import { readConfig } from '../../layers/config-file';
import type { ReadOptions } from '../../layers/layer-data';
import {
  bindLinear,
  freshMemory,
  LayerLoader,
  type Linear,
  type LinearSpec,
  layerOf,
} from '../../layers/linear';
import type { TensorShapes } from '../../layers/tensor-shapes';
import { readTextEncoderConfig } from '../../umt5/text-encoder-config';

/** The transformers, which take turns by timestep, each of which is a perceptron of one hidden layer here. */
export const experts = ['high_noise', 'low_noise'] as const;
export type Expert = (typeof experts)[number];

/** Pixels per latent on each side, and frames per latent frame after the first. */
export const strides = { space: 32, time: 8 } as const;

const positive = z.int().positive();
const sizesSchema = z.object({
  /** Latent channels. */
  channels: positive.min(3),
  hidden: positive,
  /** The first expert computes at timesteps from here on. */
  boundary: z.number().min(0).max(1000),
});

export async function readTwoExpertsConfig(folder: ModelFolder) {
  const [sizes, text] = await Promise.all([
    readConfig(folder, 'sizes.json', sizesSchema),
    readTextEncoderConfig(folder),
  ]);
  return { ...sizes, text_encoder: text };
}
export type TwoExpertsConfig = Awaited<ReturnType<typeof readTwoExpertsConfig>>;

export function expertAt(timestep: number, { boundary }: TwoExpertsConfig): Expert {
  return timestep >= boundary ? 'high_noise' : 'low_noise';
}

/** Inputs and outputs of an expert's linear layers. Beside the image: whether the frame is the first, and t/1000. */
const layers = ({ channels, hidden, text_encoder }: TwoExpertsConfig) => ({
  latents: [channels, hidden] as const,
  condition: [channels + 2, hidden] as const,
  text: [text_encoder.d_model, hidden] as const,
  output: [hidden, channels] as const,
});
type Layer = keyof ReturnType<typeof layers>;

/** Every tensor of an expert. */
export function expertTensors(expert: Expert, config: TwoExpertsConfig): TensorShapes {
  const shapes: TensorShapes = new Map();
  for (const [name, [input, output]] of Object.entries(layers(config))) {
    shapes.set(`${expert}.${name}.weight`, [output, input]);
    shapes.set(`${expert}.${name}.bias`, [output]);
  }
  return shapes;
}

/** Every tensor of the image encoder. */
export function imageEncoderTensors({ channels }: TwoExpertsConfig): TensorShapes {
  return new Map([
    ['image_encoder.proj.weight', [channels, 3]],
    ['image_encoder.proj.bias', [channels]],
  ]);
}

/** v = W_o·gelu(W_x·x + W_c·c + W_t·t), each with a bias; latents x, condition c and text t have a row per position. */
const expertGraph = memoised(
  (config: TwoExpertsConfig, specs: Readonly<Record<Layer, LinearSpec>>) => {
    const g = new Graph('two-experts');
    const { channels, text_encoder } = config;
    const layer = (name: Layer) => layerOf(name, specs[name]);
    const x = linear(g.input('x', ['R', channels]), layer('latents')); // [R, hidden]
    const c = linear(g.input('c', ['R', channels + 2]), layer('condition')); // [R, hidden]
    const t = linear(g.input('t', ['R', text_encoder.d_model]), layer('text')); // [R, hidden]
    g.output('velocity', linear(gelu(add(add(x, c), t)), layer('output'))); // [R, channels]
    return g;
  },
);

/** The linear layers of an expert on the device. */
export type ExpertWeights = Readonly<Record<Layer, Linear>>;

export async function loadExpert(
  scope: Scope,
  checkpoint: Checkpoint,
  expert: Expert,
  config: TwoExpertsConfig,
  options: ReadOptions,
): Promise<ExpertWeights> {
  const loader = new LayerLoader(freshMemory(scope), checkpoint, options);
  const loaded: Partial<Record<Layer, Linear>> = {};
  for (const name of Object.keys(layers(config)) as Layer[]) {
    loaded[name] = await loader.linear(`${expert}.${name}`);
  }
  return loaded as ExpertWeights;
}

type Tensor = DeviceTensor<'float32'>;
type Inputs = Readonly<Record<'x' | 'c' | 't' | 'velocity', Tensor>>;

/** Both experts, compiled for a clip of so many positions. */
export async function openExperts(
  backend: Backend,
  config: TwoExpertsConfig,
  weights: Readonly<Record<Expert, ExpertWeights>>,
  positions: number,
) {
  const ranks = new Map<string, number[]>();
  const ready = experts.map((expert) => {
    const entries = Object.entries(weights[expert]);
    for (const [name, { tensors }] of entries) {
      const rank = tensors.down?.dims[0];
      if (rank !== undefined) ranks.set(name, [...(ranks.get(name) ?? []), rank]);
    }
    const specs = Object.fromEntries(entries.map(([name, { spec }]) => [name, spec]));
    const graph = expertGraph(config, specs as Readonly<Record<Layer, LinearSpec>>);
    const bound = entries.map(([name, layer]) => bindLinear(name, layer));
    return { graph, bound: Object.assign({}, ...bound) };
  });
  const sizes = { chunks: [], sizes: { R: positions }, classed: new Set<string>(), ranks };
  const executor = await openExecutor(backend, new Set(ready.map(({ graph }) => graph)), sizes);
  return {
    async run(expert: Expert, inputs: Inputs) {
      const chosen = ready[experts.indexOf(expert)];
      if (chosen) await executor.run(chosen.graph, { ...inputs, ...chosen.bound });
    },
    dispose: () => executor.dispose(),
  };
}

const imageGraph = memoised((spec: LinearSpec) => {
  const g = new Graph('image-encoder');
  const { inFeatures } = spec;
  g.output('latent', linear(g.input('colours', ['R', inFeatures]), layerOf('proj', spec)));
  return g;
});

/**
 * The image encoder: a linear map of the mean colour of each patch.
 *
 * @param colours [R, 3]
 * @returns [R, channels]
 */
export async function encodeColours(
  backend: Backend,
  checkpoint: Checkpoint,
  colours: Float32Array,
): Promise<Float32Array> {
  const scope = new Scope(backend);
  const rows = colours.length / 3;
  try {
    const loader = new LayerLoader(freshMemory(scope), checkpoint, { precision: 'f32' });
    const proj = await loader.linear('image_encoder.proj');
    const graph = imageGraph(proj.spec);
    const sizes = { chunks: [], sizes: { R: rows }, classed: new Set<string>(), ranks: new Map() };
    const executor = await openExecutor(backend, [graph], sizes);
    try {
      const latent = scope.float32([rows, proj.spec.outFeatures], 'activations');
      const bound = { colours: scope.float32([rows, 3], 'activations', colours), latent };
      await executor.run(graph, { ...bound, ...bindLinear('proj', proj) });
      return await backend.read(latent);
    } finally {
      executor.dispose();
    }
  } finally {
    scope.dispose();
  }
}
