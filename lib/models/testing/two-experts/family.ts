import {
  at,
  KinoraError,
  type LoraFile,
  type ModelManifest,
  type Precision,
} from '../../../contract';
import { type Backend, type DeviceBytes, type DeviceTensor, Scope } from '../../../gpu';
import type { KeyFrame } from '../../../pipeline/key-frames';
import type { LatentSize, LatentSpace } from '../../../pipeline/latents';
import { MemoryPlanner } from '../../../pipeline/memory/memory-plan';
import type {
  ClipConditions,
  ClipDenoiser,
  ClipToDecode,
  Denoiser,
  Loading,
  ModelFamily,
  PlanRequest,
  TokenIds,
  VideoModel,
} from '../../../pipeline/model';
import { type Checkpoint, type ModelFolder, openSafetensors, withAliases } from '../../../weights';
import { openStoredComponent, storedBytes } from '../../../weights/store';
import { combineLoras, type LoraBranches, readLoras } from '../../layers/lora';
import { countTextEncoder, encodePrompts } from '../../umt5/text-encoder';
import { maxPromptTokens, textEncoderAliases } from '../../umt5/text-encoder-config';
import { installedConfiguration } from '../../umt5/text-encoder-recipe';
import { loadTokenizer } from '../../umt5/tokenizer';
import {
  type Component,
  components,
  loraArchitecture,
  recipeOf,
  twoExpertsInstallation,
} from './install';
import {
  type Expert,
  type ExpertWeights,
  encodeColours,
  expertAt,
  experts,
  loadExpert,
  openExperts,
  readTwoExpertsConfig,
  strides,
  type TwoExpertsConfig,
} from './network';

/*
 * A second model family, as small as one can be that has all that differs between families: two transformers that
 * take turns, an image encoder whose result depends on the length of the clip, 8n + 1 frames, and the text encoder
 * that other models have. It is this folder and the line `two-experts: twoExpertsFamily` of a registry.
 */

type Tensor = DeviceTensor<'float32'>;

interface Parts {
  readonly manifest: ModelManifest;
  readonly fingerprint: string;
  readonly installed: boolean;
  readonly folder: ModelFolder;
  readonly config: TwoExpertsConfig;
  readonly precision: Precision;
  readonly weights: Readonly<Record<Component, Checkpoint>>;
}

/** Latents [C, R] ↔ rows [R, C]. */
function transposed(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  return Float32Array.from(values, (_, i) => {
    const [row, column] = [i % rows, Math.floor(i / rows)];
    return values[row * columns + column] as number;
  });
}

class TwoExpertsClip implements ClipDenoiser {
  readonly rowWidth: number;
  readonly #rows: number;

  constructor(
    readonly config: TwoExpertsConfig,
    readonly clip: ClipConditions,
    readonly scope: Scope,
    readonly network: Awaited<ReturnType<typeof openExperts>>,
    /** [R, d_model], of each prompt. */
    readonly texts: readonly Tensor[],
    /** [R, C + 2] */
    readonly condition: Tensor,
  ) {
    const { frames, height, width } = clip.size;
    this.#rows = frames * height * width;
    this.rowWidth = config.channels;
  }

  pack(latents: Float32Array): Float32Array {
    return transposed(latents, this.rowWidth);
  }

  unpack(rows: Float32Array): Float32Array {
    return transposed(rows, this.#rows);
  }

  async velocity(timestep: number, x: Tensor, velocities: readonly Tensor[]): Promise<void> {
    const { image, mask } = this.clip.image;
    const { channels } = this.config;
    const width = channels + 2;
    const condition = new Float32Array(this.#rows * width);
    for (let row = 0; row < this.#rows; row++) {
      for (let c = 0; c < channels; c++) {
        condition[row * width + c] = image?.[row * channels + c] ?? Number.NaN;
      }
      condition[row * width + channels] = mask?.[row] ?? Number.NaN;
      condition[row * width + channels + 1] = timestep / 1000;
    }
    this.scope.backend.write(this.condition, condition);
    const expert = expertAt(timestep, this.config);
    for (const [i, velocity] of velocities.entries()) {
      const t = this.texts[i];
      if (!t) throw new TypeError('there are more velocities than texts');
      await this.network.run(expert, { x, c: this.condition, t, velocity });
    }
  }

  dispose(): void {
    this.network.dispose();
    this.scope.dispose();
  }
}

class TwoExperts implements VideoModel {
  readonly decoders = ['full'] as const;
  readonly adapters = {};
  readonly latents: LatentSpace;

  constructor(
    readonly parts: Parts,
    readonly lora: LoraBranches | null = null,
    readonly adapterIds: readonly string[] = [],
  ) {
    this.latents = latentsOf(parts.config);
  }

  get manifest(): ModelManifest {
    return this.parts.manifest;
  }

  get installed(): boolean {
    return this.parts.installed;
  }

  get fingerprint(): string {
    return JSON.stringify([this.parts.fingerprint, ...this.adapterIds]);
  }

  computation(size: LatentSize) {
    return computationOf(this.parts.config, size);
  }

  weightBytes(stage: 'text' | 'denoise'): number {
    const { weights } = this.parts;
    const read = stage === 'text' ? [weights.text_encoder] : experts.map((name) => weights[name]);
    let bytes = 0;
    for (const checkpoint of read) {
      for (const name of checkpoint.names()) {
        if (name !== 'shared.weight') bytes += checkpoint.bytes(name);
      }
    }
    return bytes;
  }

  async withLoras(files: readonly LoraFile[]): Promise<VideoModel> {
    if (files.length === 0) return this;
    const architecture = loraArchitecture(this.parts.config);
    const { loras, ids } = await readLoras(files, architecture);
    return new TwoExperts(this.parts, combineLoras(loras, architecture), ids);
  }

  async tokenize(prompts: readonly string[]): Promise<TokenIds[]> {
    const { encodePrompt } = await loadTokenizer(this.parts.folder);
    return prompts.map(encodePrompt);
  }

  async promptMeter() {
    return (await loadTokenizer(this.parts.folder)).measure;
  }

  planMemory(request: PlanRequest): Promise<MemoryPlanner> {
    return planMemory(this.parts.config, this.parts.precision, request);
  }

  encodeText(backend: Backend, prompts: readonly TokenIds[], loading: Loading) {
    const { weights, config, precision } = this.parts;
    const reading = { ...loading, precision };
    return encodePrompts(backend, weights.text_encoder, config.text_encoder, prompts, reading);
  }

  encodeFrames(): Promise<Float32Array[]> {
    throw new TypeError('its manifest goes on from pictures only');
  }

  /** @returns a row of `image` and a value of `mask` for each position of the clip: the image fades with the frames */
  async encodeImages(backend: Backend, images: readonly KeyFrame[], frames: number) {
    const { data, width, height } = at(images, 0).image;
    const { space, time } = strides;
    const [columns, rows] = [width / space, height / space];
    const colours = new Float32Array(rows * columns * 3);
    for (const [i, value] of data.entries()) {
      const [x, y] = [i % width, Math.floor(i / width) % height];
      const patch = Math.floor(y / space) * columns + Math.floor(x / space);
      const at = patch * 3 + Math.floor(i / (width * height));
      colours[at] = (colours[at] as number) + value / space ** 2;
    }
    const first = await encodeColours(backend, this.parts.weights.image_encoder, colours);
    const latentFrames = 1 + (frames - 1) / time;
    const image = new Float32Array(first.length * latentFrames);
    const mask = new Float32Array(rows * columns * latentFrames).fill(1, 0, rows * columns);
    for (let f = 0; f < latentFrames; f++) {
      const faded = first.map((value) => value * (1 - f / latentFrames));
      image.set(faded, f * first.length);
    }
    return { image, mask };
  }

  async loadDenoiser(backend: Backend, _: unknown, loading: Loading): Promise<Denoiser> {
    const { config, weights, precision } = this.parts;
    const options = { ...loading, precision, ...(this.lora && { lora: this.lora }) };
    const scope = new Scope(backend);
    try {
      const loaded: Partial<Record<Expert, ExpertWeights>> = {};
      for (const expert of experts) {
        loaded[expert] = await loadExpert(scope, weights[expert], expert, config, options);
      }
      const both = loaded as Readonly<Record<Expert, ExpertWeights>>;
      return {
        prepare: (clip) => prepareClip(backend, config, both, clip),
        stop: async () => undefined,
        dispose: () => scope.dispose(),
      };
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  /** The colour of each frame's latent position. */
  async *decode(_: unknown, { size, latents }: ClipToDecode) {
    const { space, time } = strides;
    const [width, height] = [size.width * space, size.height * space];
    const channelSize = size.frames * size.height * size.width;
    for (let f = 0; f <= (size.frames - 1) * time; f++) {
      const frame = new Float32Array(3 * width * height);
      for (let i = 0; i < frame.length; i++) {
        const [x, y] = [i % width, Math.floor(i / width) % height];
        const row = Math.ceil(f / time) * size.height + Math.floor(y / space);
        const position = row * size.width + Math.floor(x / space);
        const channel = Math.floor(i / (width * height));
        frame[i] = Math.tanh(latents[channel * channelSize + position] ?? Number.NaN);
      }
      yield frame;
    }
  }
}

async function prepareClip(
  backend: Backend,
  config: TwoExpertsConfig,
  weights: Readonly<Record<Expert, ExpertWeights>>,
  clip: ClipConditions,
): Promise<ClipDenoiser> {
  const { frames, height, width } = clip.size;
  const rows = frames * height * width;
  const { d_model: d } = config.text_encoder;
  const scope = new Scope(backend);
  try {
    const texts = clip.texts.map((embeddings) => {
      const mean = new Float32Array(d);
      const tokens = embeddings.length / d;
      for (const [i, value] of embeddings.entries()) {
        mean[i % d] = (mean[i % d] as number) + value / tokens;
      }
      const all = Float32Array.from({ length: rows * d }, (_, i) => mean[i % d] as number);
      return scope.float32([rows, d], 'activations', all);
    });
    const condition = scope.float32([rows, config.channels + 2], 'activations');
    const network = await openExperts(backend, config, weights, rows);
    return new TwoExpertsClip(config, clip, scope, network, texts, condition);
  } catch (error) {
    scope.dispose();
    throw error;
  }
}

function latentsOf({ channels }: TwoExpertsConfig): LatentSpace {
  const rgb = [0, 1, 2].map((row) => [0, 1, 2].map((column) => (row === column ? 1 : 0)));
  const matrix = Array.from({ length: channels }, (_, c) => rgb[c] ?? [0, 0, 0]);
  const preview = { matrix: matrix as [number, number, number][], bias: [0, 0, 0] as const };
  return { channels, strides, preview };
}

function computationOf({ hidden, channels, text_encoder }: TwoExpertsConfig, size: LatentSize) {
  const rows = size.frames * size.height * size.width;
  const weights = hidden * (3 * channels + 2 + text_encoder.d_model);
  return {
    pass: { flops: 2 * rows * weights, calls: 1 },
    decode: { flops: rows * strides.space ** 2, calls: 1 },
  };
}

/** A bound for what is a few kilobytes; the text encoder is counted. */
const little: DeviceBytes = {
  weights: 2 ** 18,
  activations: 2 ** 18,
  caches: 0,
  runtime: 2 ** 19,
  peak: 2 ** 20,
  largest: 2 ** 18,
};

async function planMemory(
  config: TwoExpertsConfig,
  precision: Precision,
  { native, backend, promptTokens = [maxPromptTokens, maxPromptTokens] }: PlanRequest,
): Promise<MemoryPlanner> {
  const { kernels = null, compute } = backend ?? {};
  const denoising = { chunkTokens: 1, largest: little.largest, blockBytes: 0, bytes: () => little };
  return new MemoryPlanner({
    native,
    precision,
    tokens: 1,
    blocks: 1,
    text: await countTextEncoder(config.text_encoder, precision, promptTokens, kernels, compute),
    image: little,
    denoising: [denoising],
    decoding: [{ tiles: 'full', bytes: little, work: 1 }],
  });
}

/** Opens each component, by how the files lie. */
async function partsOf(
  open: (component: Component) => Promise<Checkpoint>,
): Promise<Parts['weights']> {
  const opened: Partial<Record<Component, Checkpoint>> = {};
  for (const component of components) opened[component] = await open(component);
  const { text_encoder, ...others } = opened as Record<Component, Checkpoint>;
  return { ...others, text_encoder: withAliases(text_encoder, textEncoderAliases) };
}

export const twoExpertsFamily: ModelFamily = {
  installation: twoExpertsInstallation,
  async open(manifest, folder) {
    const config = await readTwoExpertsConfig(folder);
    const weights = await partsOf(async (component) =>
      openSafetensors(await folder.open(`${component}.safetensors`)),
    );
    const { precision } = manifest;
    const fingerprint = JSON.stringify([manifest.id, precision]);
    return new TwoExperts({
      manifest,
      fingerprint,
      installed: false,
      folder,
      config,
      precision,
      weights,
    });
  },
  async openInstalled(manifest, folder) {
    for (const component of ['configuration', ...components]) {
      if (await folder.folder(component).open('manifest.json')) continue;
      const sentence = `The model "${manifest.name}" is not completely in this browser yet.`;
      throw new KinoraError('MODEL_NOT_INSTALLED', sentence);
    }
    const files = await installedConfiguration(folder);
    const config = await readTwoExpertsConfig(files);
    const sources: unknown[] = [];
    let { precision } = manifest;
    const weights = await partsOf(async (component) => {
      const checkpoint = await openStoredComponent(folder.folder(component));
      sources.push(checkpoint.stored.sources);
      if (component === 'high_noise') ({ precision } = checkpoint.stored);
      return checkpoint;
    });
    const fingerprint = JSON.stringify([manifest.id, precision, sources]);
    return new TwoExperts({
      manifest,
      fingerprint,
      installed: true,
      folder: files,
      config,
      precision,
      weights,
    });
  },
  async count(precision, configuration) {
    const config = await readTwoExpertsConfig(configuration);
    const stored = (component: Component) => storedBytes(recipeOf(component, config, precision));
    const bytes = {
      text: stored('text_encoder'),
      denoise: stored('high_noise') + stored('low_noise'),
    };
    return {
      latents: { strides },
      computation: (size) => computationOf(config, size),
      weightBytes: (stage) => bytes[stage],
      planMemory: (request) => planMemory(config, precision, request),
    };
  },
};
