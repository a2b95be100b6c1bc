import { at } from '../../../contract';
import { type DeviceTensor, elementCount, type Scope } from '../../../gpu';
import {
  type FilterOrder,
  packedDims,
  packedRows,
  packJob,
  type Storage,
} from '../../../gpu/kernels';
import type { VaeConfig } from '../config';
import {
  dtypes,
  FrameHistory,
  KernelConvolution,
  type KernelConvolutionShape,
  type KernelSetting,
  KernelUpsample,
  type KernelWeights,
  kernelSetting,
} from './kernel-layers';
import { decoderKernels } from './kernel-shapes';
import { FrameAttention, ResidualBlock, type Upsample, type Workspace } from './layers';
import { type LayerLoader, NetworkLoader } from './network';
import { allPhases, derived, type VaeCheckpoint, VaeLoader, type VaeLoadOptions } from './weights';

/**
 * What loads the decoder's layers: as kernels of our own where the backend has chosen a convolution and the
 * device compiles all of them, else by the runtime.
 */
export async function openLoader(
  workspace: Workspace,
  scope: Scope,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  options: VaeLoadOptions,
): Promise<LayerLoader> {
  const loader = new VaeLoader(scope, checkpoint, options);
  const setting = kernelSetting(workspace.backend);
  if (setting) {
    const { compute, variant, storage } = setting;
    const failures = await compute.compile(decoderKernels(variant, storage, config.out_channels));
    if (failures.length === 0) return new KernelLoader(workspace, loader, setting);
  }
  return new NetworkLoader(workspace, loader, 3);
}

/** Weights in a file's order, and where in it they lie. */
interface Source {
  /** Empty where memory is only counted. */
  readonly data: Float32Array;
  readonly elements: number;
  readonly order: FilterOrder;
}

/** Loads layers as kernels of our own; the attention stays with the runtime. */
class KernelLoader implements LayerLoader {
  readonly convolutions: KernelConvolution[] = [];

  constructor(
    readonly workspace: Workspace,
    readonly loader: VaeLoader,
    readonly setting: KernelSetting,
  ) {}

  /** The decoder's first convolution, and behind a norm its last: weights and result are f32. */
  async convolution(name: string, inputs: number, filters: number, norm?: string) {
    const weights = await this.#pack([await this.#taps(name)], 'f32', [`${name}.bias`]);
    const gamma = norm === undefined ? null : await this.#gamma(norm);
    return this.#keep({ inputs, filters, kernel: 3, output: 'f32' }, weights, gamma);
  }

  async timeConvolutions(name: string, channels: number) {
    const history = new FrameHistory(this.workspace.caches);
    const part = async (index: 0 | 1) => {
      const source = await this.#taps(name, index, 2);
      const bias = await this.loader.read(`${name}.bias`);
      const weights = {
        weights: await this.#packed([source], this.setting.storage),
        bias: this.#bias(bias.subarray(index * channels, (index + 1) * channels)),
      };
      const shape = { inputs: channels, filters: channels, kernel: 1 } as const;
      const role = index === 0 ? 'first' : 'second';
      return this.#keep(shape, weights, null, history, role);
    };
    return [await part(0), await part(1)] as const;
  }

  async pointwise(name: string, inputs: number, filters: number) {
    const order = {
      blocks: 1,
      filters,
      channels: inputs,
      taps: 1,
      strides: { block: 0, filter: inputs, channel: 1, tap: 0 },
    };
    const source = await this.#source(`${name}.weight`, order);
    const bias = await this.loader.read(`${name}.bias`);
    const weights = {
      weights: await this.#packed([source], 'f32'),
      bias: this.#bias(bias.subarray(0, filters)),
    };
    return this.#keep({ inputs, filters, kernel: 1 }, weights, null, null);
  }

  async residualBlock(name: string, inputs: number, filters: number): Promise<ResidualBlock> {
    const { storage } = this.setting;
    const names = [1, 2].map((i) => [`${name}.conv${i}`, `${name}.norm${i}`] as const);
    const [[first, firstNorm], [second, secondNorm]] = [at(names, 0), at(names, 1)];
    const shortcut = `${name}.conv_shortcut`;
    const changes = inputs !== filters;
    const sources = [
      await this.#taps(second),
      ...(changes ? [await this.#shortcut(shortcut)] : []),
    ];
    const biases = [`${second}.bias`, ...(changes ? [`${shortcut}.bias`] : [])];
    return new ResidualBlock(
      this.workspace,
      this.#keep(
        { inputs, filters, kernel: 3, output: storage },
        await this.#pack([await this.#taps(first)], storage, [`${first}.bias`]),
        await this.#gamma(firstNorm),
      ),
      this.#keep(
        { inputs: filters, filters, kernel: 3, shortcutInputs: changes ? inputs : 0 },
        await this.#pack(sources, storage, biases),
        await this.#gamma(secondNorm),
      ),
    );
  }

  async attention(name: string, channels: number): Promise<FrameAttention> {
    return new FrameAttention(this.workspace, channels, await this.loader.attention(name));
  }

  async upsample(name: string, channels: number, shortcut: Upsample['shortcut']) {
    const { checkpoint } = this.loader;
    const stored = derived.phases(name);
    const isStored = checkpoint.has(stored);
    const shape = checkpoint.shape(isStored ? stored : `${name}.weight`);
    const [filters, inputs] = isStored
      ? [at(shape, 1), at(shape, 2)]
      : [at(shape, 0), at(shape, 1)];
    const data = isStored
      ? await this.loader.read(stored)
      : allPhases(await this.loader.read(`${name}.weight`), filters * inputs);
    const order = {
      blocks: 4,
      filters,
      channels: inputs,
      taps: 4,
      strides: { block: filters * inputs * 4, filter: inputs * 4, channel: 4, tap: 1 },
    };
    const weights = await this.#pack(
      [{ data, elements: 16 * filters * inputs, order }],
      this.setting.storage,
      [`${name}.bias`],
    );
    return new KernelUpsample(this.workspace, this.setting, channels, shortcut, weights);
  }

  #keep(
    shape: KernelConvolutionShape,
    weights: KernelWeights,
    gamma: DeviceTensor | null,
    history: FrameHistory | null = new FrameHistory(this.workspace.caches),
    role: KernelConvolution['role'] = 'only',
  ): KernelConvolution {
    const { workspace, setting } = this;
    const layer = new KernelConvolution(workspace, setting, shape, weights, gamma, history, role);
    this.convolutions.push(layer);
    return layer;
  }

  async #gamma(norm: string): Promise<DeviceTensor> {
    return (await this.loader.gamma(`${norm}.gamma`)).gamma as DeviceTensor;
  }

  /** Time taps of a kernel, the newest first; filters `[part·count/of, (part+1)·count/of)` only. */
  async #taps(name: string, part = 0, of = 1): Promise<Source> {
    const { checkpoint } = this.loader;
    const stored = derived.taps(name);
    if (checkpoint.has(stored)) {
      const [depth = 0, all = 0, channels = 0, height = 0, width = 0] = checkpoint.shape(stored);
      const [taps, filters] = [height * width, all / of];
      const filter = channels * taps;
      const strides = { block: all * filter, filter, channel: taps, tap: 1 };
      const order = {
        blocks: depth,
        filters,
        channels,
        taps,
        strides,
        first: part * filters * filter,
      };
      return this.#source(stored, order);
    }
    const weight = `${name}.weight`;
    const [all = 0, channels = 0, depth = 0, height = 0, width = 0] = checkpoint.shape(weight);
    const [taps, filters] = [height * width, all / of];
    const filter = channels * depth * taps;
    const strides = { block: -taps, filter, channel: depth * taps, tap: 1 };
    const first = (depth - 1) * taps + part * filters * filter;
    const order = { blocks: depth, filters, channels, taps, strides, first };
    return this.#source(weight, order);
  }

  /** A 1×1 convolution. */
  async #shortcut(name: string): Promise<Source> {
    const { checkpoint } = this.loader;
    const stored = derived.transposed(name);
    const isStored = checkpoint.has(stored);
    const source = isStored ? stored : `${name}.weight`;
    const shape = checkpoint.shape(source);
    const [filters, channels] = isStored
      ? [at(shape, 1), at(shape, 0)]
      : [at(shape, 0), at(shape, 1)];
    const strides = isStored
      ? { block: 0, filter: 1, channel: filters, tap: 0 }
      : { block: 0, filter: channels, channel: 1, tap: 0 };
    const order = { blocks: 1, filters, channels, taps: 1, strides };
    return this.#source(source, order);
  }

  async #source(name: string, order: FilterOrder): Promise<Source> {
    const { checkpoint } = this.loader;
    const elements = elementCount(checkpoint.shape(name));
    return { data: await this.loader.read(name), elements, order };
  }

  /** Weights of several sources one after another, and the sum of their biases. */
  async #pack(
    sources: readonly Source[],
    storage: Storage,
    biases: readonly string[],
  ): Promise<KernelWeights> {
    const sum = (await this.loader.read(at(biases, 0))).slice();
    for (const name of biases.slice(1)) {
      const bias = await this.loader.read(name);
      for (const [i, value] of bias.entries()) sum[i] = at(sum, i) + value;
    }
    return { weights: await this.#packed(sources, storage), bias: this.#bias(sum) };
  }

  async #packed(sources: readonly Source[], storage: Storage): Promise<DeviceTensor> {
    const { loader, setting, workspace } = this;
    const { filters } = at(sources, 0).order;
    const rows = sources.reduce((total, { order }) => total + packedRows(order), 0);
    const packed = loader.scope.tensor(dtypes[storage], packedDims(rows, filters), 'weights');
    let row = 0;
    for (const { order, data, elements } of sources) {
      const raw = workspace.backend.tensor('float32', [elements], 'weights', data);
      try {
        await setting.compute.dispatch([packJob(raw, order, packed, row)]);
      } finally {
        raw.dispose();
      }
      row += packedRows(order);
    }
    return packed;
  }

  #bias(bias: Float32Array): DeviceTensor {
    const padded = new Float32Array(Math.ceil(bias.length / 4) * 4);
    padded.set(bias);
    return this.loader.scope.float32([padded.length], 'weights', padded);
  }
}
