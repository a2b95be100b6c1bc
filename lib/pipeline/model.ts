import type {
  AdapterFile,
  AdapterPart,
  DecoderKind,
  KernelSetting,
  KinoraError,
  LoraFile,
  ModelManifest,
  Precision,
  PromptLength,
} from '../contract';
import type { Backend, DeviceTensor } from '../gpu';
import type { ModelFolder } from '../weights';
import type { StoreFolder } from '../weights/store';
import type { ModelInstallation } from './installation';
import type { KeyFrame } from './key-frames';
import type { ClipSize, Frame, LatentSize, LatentSpace } from './latents';
import type { DecodeTiles, MemoryPlan, MemoryPlanner } from './memory/memory-plan';

/** What a part of a run computes. */
export interface Computation {
  /** Floating-point operations. */
  readonly flops: number;
  /** Graphs that are run one after another: each takes a while whatever it computes. */
  readonly calls: number;
}

/** Token ids of a prompt, as the model's own tokenizer makes them. */
export type TokenIds = readonly number[];

/** Options of a stage that reads weights. */
export interface Loading {
  readonly signal: AbortSignal;
  /** Called with the stored size of each tensor that was read. */
  readonly onBytes: (bytes: number) => void;
}

/** A run whose memory a model plans. */
export interface PlanRequest {
  /** The size at which the model runs, and frames of its longest clip. */
  readonly native: ClipSize;
  /** The device's measured rate decides the chunks; without a device an estimate does. */
  readonly backend?: Backend;
  /** The kernels that count without a backend; `exact` when absent. With a backend its own kernels count. */
  readonly kernels?: KernelSetting;
  /** Tokens of the prompts: one, or two with guidance. Of the longest when absent. */
  readonly promptTokens?: readonly number[];
  /** Whether there is guidance, where no prompts are given. True when absent. */
  readonly guided?: boolean;
  /** The model's own adapters that will run, of a model that is not opened. */
  readonly adapters?: readonly AdapterFile[];
  /** `full` when absent. */
  readonly decoder?: DecoderKind;
  /** See {@link ClipConditions.reusesBlocks}. */
  readonly reusesBlocks?: boolean;
  /** Whether the sampler adds noise in its steps, which takes memory. False when absent. */
  readonly stochastic?: boolean;
  /** Most evaluations of the model in a step of the sampler; more than one takes memory. 1 when absent. */
  readonly evaluations?: number;
}

/** Tensors by the names that the model gives them. */
export type NamedTensors = Readonly<Record<string, Float32Array>>;

/** Conditions of the denoising of one clip. */
export interface ClipConditions {
  readonly size: LatentSize;
  /** What {@link VideoModel.encodeImages} made of the pictures that the clip shows. */
  readonly image: NamedTensors;
  /** Text embeddings: of the prompt, and with guidance of the negative prompt. */
  readonly texts: readonly Float32Array[];
  /** Whether {@link BlockWork} other than `compute` will be asked for; it takes memory. False when absent. */
  readonly reusesBlocks?: boolean;
}

/**
 * What is done with the denoiser's blocks in a step: compute them; compute them and keep what they added
 * to their input; or add what was kept last, without running them.
 */
export type BlockWork = 'compute' | 'keep' | 'reuse';

/** How far a decode in tiles is. */
export interface TileProgress {
  /** 1 … tiles. */
  readonly tile: number;
  readonly tiles: number;
  /** Frames of this tile so far. */
  readonly frame: number;
}

/** A clip to decode, and how. */
export interface ClipToDecode {
  readonly size: LatentSize;
  /** [C, F, h, w] in model space. */
  readonly latents: Float32Array;
  /** One of {@link VideoModel.decoders}. */
  readonly decoder: DecoderKind;
  readonly tiles: DecodeTiles;
  readonly signal: AbortSignal;
  /** Called with each frame of each tile, where there are tiles. */
  readonly onTile: (tile: TileProgress) => void;
}

/**
 * The denoising network for one clip. The solver moves rows of its own layout: `pack` makes them of
 * latents, without what the image fixes, and `unpack` makes latents of them again.
 */
export interface ClipDenoiser {
  /** Values of a row of the solver's tensors. */
  readonly rowWidth: number;
  /** Latents [C, F, h, w] → the rows that are denoised. */
  pack(latents: Float32Array): Float32Array;
  /** Rows → latents [C, F, h, w], with the frames that the image fixes. */
  unpack(rows: Float32Array): Float32Array;
  /**
   * The flow velocity at a timestep, for each of the clip's texts or for the first of them.
   *
   * @param timestep 0 … 1000
   * @param sample the rows as they are
   * @param velocities where the velocity under each text goes, alike in shape
   * @param blocks for each velocity, `compute` when absent; a model without such blocks always computes
   */
  velocity(
    timestep: number,
    sample: DeviceTensor<'float32'>,
    velocities: readonly DeviceTensor<'float32'>[],
    options?: { readonly signal?: AbortSignal | undefined; readonly blocks?: readonly BlockWork[] },
  ): Promise<void>;
  /** Frees the device's memory; `pack` and `unpack`, which need none of it, still work. */
  dispose(): void;
}

/** The denoising network with its weights on the device. */
export interface Denoiser {
  /**
   * Takes what a clip needs on the device.
   *
   * @throws KinoraError `OUT_OF_MEMORY`; then nothing of the clip stays on the device
   */
  prepare(clip: ClipConditions): Promise<ClipDenoiser>;
  /** Ends reading ahead for good; resolves when nothing is under way. The memory stays. */
  stop(): Promise<void>;
  dispose(): void;
}

/** An adapter that lies beside the weights of a model. */
export interface ModelAdapter {
  /** `owner/name/path@revision` of an installed one or the name of its local file; null in a bundled model. */
  readonly source: string | null;
  /** Why it cannot be applied to this model; null where it can. */
  readonly misfit: KinoraError | null;
}

/** How strongly each of a model's own adapters acts in a run. */
export type AdapterScales = Readonly<Partial<Record<AdapterPart, number>>>;

/** The input from which work and memory of a run are counted. */
export interface ModelCounts {
  readonly latents: Pick<LatentSpace, 'strides'>;
  /** The work of one pass of the denoiser over a clip and of its decode, for estimates of time. */
  computation(
    size: LatentSize,
    decoder: DecoderKind,
  ): { readonly pass: Computation; readonly decode: Computation };
  /** Bytes of weights that a stage reads. */
  weightBytes(stage: 'text' | 'denoise'): number;
  /** Counts the device bytes of each stage, so that a plan can be made. */
  planMemory(request: PlanRequest): Promise<MemoryPlanner>;
}

/**
 * A model that was opened and checked, and what a run asks of it, stage by stage. No stage leaves
 * anything on the device but what its result holds.
 */
export interface VideoModel extends ModelCounts {
  readonly manifest: ModelManifest;
  /** Whether its files lie in the browser's store, where they may be replaced between runs. */
  readonly installed: boolean;
  /** The fingerprint of weights, precision and adapters: no other model continues a saved run. */
  readonly fingerprint: string;
  readonly latents: LatentSpace;
  /** The decoders that the opened model has; `full` is always one of them. */
  readonly decoders: readonly DecoderKind[];
  /** The adapters that came with the model, for its profiles. */
  readonly adapters: Readonly<Partial<Record<AdapterPart, ModelAdapter>>>;
  /**
   * The same model with adapters added to it.
   *
   * @param scales of the model's own {@link adapters}; one without a scale is left out
   * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`; `MODEL_FILE_MISSING` where an adapter of its own
   * is wanted and absent
   */
  withLoras(files: readonly LoraFile[], scales?: AdapterScales): Promise<VideoModel>;
  /** A sentence for each added adapter that has no effect or could not be read. */
  readonly notes?: readonly string[];
  /** Token ids of each prompt; what is too long is cut. */
  tokenize(prompts: readonly string[]): Promise<TokenIds[]>;
  /** Loads the tokenizer; what it returns tells how long a prompt is, and how much of it the model reads. */
  promptMeter(): Promise<(prompt: string) => PromptLength>;
  /** Text embeddings of each prompt. */
  encodeText(
    backend: Backend,
    prompts: readonly TokenIds[],
    loading: Loading,
  ): Promise<Float32Array[]>;
  /**
   * What a clip that shows given pictures is denoised under; it is saved with the run.
   *
   * @param images in the order of their frames
   * @param frames of the clip
   * @param held latent frames that the clip begins with, those of a clip before, each [C, h, w]; none when absent
   */
  encodeImages(
    backend: Backend,
    images: readonly KeyFrame[],
    frames: number,
    signal: AbortSignal,
    held?: readonly Float32Array[],
  ): Promise<NamedTensors>;
  /**
   * The latent frames [C, h, w] that a clip goes on from, of the last frames of an earlier video.
   *
   * @param frames one more than a multiple of the latent stride
   * @throws KinoraError `MODEL_FILE_MISSING` where what is stored of the model encodes single pictures only
   */
  encodeFrames(
    backend: Backend,
    frames: readonly Frame[],
    signal: AbortSignal,
  ): Promise<Float32Array[]>;
  /**
   * Brings the denoiser's weights to the device, as far as the plan keeps them there.
   *
   * @param timestep at which it computes first: weights for others may come later
   */
  loadDenoiser(
    backend: Backend,
    plan: MemoryPlan,
    loading: Loading,
    timestep: number,
  ): Promise<Denoiser>;
  /**
   * Decodes a clip: its frames in order, planar RGB [3, height, width] in −1…1.
   *
   * @throws KinoraError `MODEL_FILE_MISSING` for a decoder that the model does not have
   */
  decode(
    backend: Backend,
    clip: ClipToDecode,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
}

/**
 * A kind of model, by the name that manifests use (`family`). It opens models, and offers what does not
 * need one opened: the installation, and plans from configuration files alone.
 */
export interface ModelFamily {
  /**
   * Opens a model as its files come, and checks it before any weight is read.
   *
   * @throws KinoraError naming the file or tensor that does not fit
   */
  open(manifest: ModelManifest, folder: ModelFolder): Promise<VideoModel>;
  /**
   * Opens a model that was installed.
   *
   * @param folder the model's folder in the store
   * @throws KinoraError as {@link open}, and `MODEL_NOT_INSTALLED`
   */
  openInstalled(manifest: ModelManifest, folder: StoreFolder): Promise<VideoModel>;
  /** What the library has to know to download, check, convert and store a model of this family. */
  readonly installation: ModelInstallation;
  /** Counts of a model from its configuration files alone, for weights of a precision. */
  count(precision: Precision, configuration: ModelFolder): Promise<ModelCounts>;
}

/** Model families by name. */
export type ModelFamilies = Readonly<Record<string, ModelFamily>>;
