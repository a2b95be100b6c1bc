import { KinoraError, type MemoryReport, type ModelManifest, type Size } from '../../contract';
import { chunkLadder, queryChunkTokens } from '../../models/wan22/chunk-size';
import { type ModelConfig, maxPromptTokens } from '../../models/wan22/config';
import type { Precision } from '../../models/wan22/layers';
import type { LoraBranches } from '../../models/wan22/lora';
import {
  type DenoisePlanner,
  planDenoise,
  planText,
  type StageBytes,
} from '../../models/wan22/plan-stages';
import { chunkTokens as cutTokens, tokensPerFrame } from '../../models/wan22/tokens';
import { allResident, type Residency } from '../../models/wan22/transformer';
import {
  planTiles,
  type Tiling,
  tiledDecoderMemory,
  vaeDecoderMemory,
  vaeEncoderMemory,
} from '../../models/wan22/vae';
import { latentFrames } from '../clips';

export type StageName = 'text' | 'image' | 'denoise' | 'decode';

/** Device bytes of one stage. */
export interface StagePlan extends StageBytes {
  readonly stage: StageName;
}

export interface PlanRequest {
  /** The size at which the model runs, and frames of a clip, 4n+1. */
  readonly native: { readonly width: number; readonly height: number; readonly frames: number };
  /** What the device's attention kernel sustains; decides the chunk size. */
  readonly flopsPerSecond?: number;
  /** Most tokens that go through a block together, where that was measured. */
  readonly chunkTokens?: number;
  /** Most bytes that the device takes in one buffer; any number of them when absent. */
  readonly largestBuffer?: number;
  /** Tokens of the prompts: one, or two with guidance. Two of the longest when absent. */
  readonly promptTokens?: readonly number[];
  readonly lora?: LoraBranches;
}

export interface MemoryPlan {
  readonly stages: readonly StagePlan[];
  /** The largest stage: each frees its memory before the next one starts. */
  readonly peak: number;
  /** The most in one buffer. */
  readonly largest: number;
  readonly tokens: number;
  /** Tokens that go through a block together, at most. */
  readonly chunkTokens: number;
  readonly native: { readonly width: number; readonly height: number; readonly frames: number };
  readonly precision: Precision;
  readonly blocks: number;
  readonly residency: Residency;
  /** How the VAE decodes. */
  readonly tiles: Tiling | 'full';
}

/**
 * Plans the memory that a clip of a model takes on the device. Nothing is run: text encoder and
 * denoising are counted by the engine's own code on a backend that only counts, the VAE by the sizes
 * of its layers.
 *
 * What a plan chooses changes no result: how many blocks stay, in how many sets of buffers the others
 * take turns, and how many tokens go through a block together (see {@link chunkLadder}). Only tiles of
 * the decode do, slightly, and they are the last resort.
 *
 * A device bounds one buffer as well as their sum: `maxBufferSize`. What one shader may see at once,
 * `maxStorageBufferBindingSize`, is no bound: the runtime binds a larger buffer in pieces (reference
 * `onnxruntime-web.md` §2).
 */
export class MemoryPlanner {
  private constructor(
    readonly config: ModelConfig,
    readonly shape: Pick<MemoryPlan, 'tokens' | 'native' | 'precision'>,
    readonly latent: { readonly height: number; readonly width: number },
    readonly text: StagePlan,
    readonly image: StagePlan,
    /** Denoising in chunks of the wanted size, and in ever smaller ones. */
    readonly denoising: readonly [DenoisePlanner, ...DenoisePlanner[]],
    readonly largestBuffer: number,
  ) {}

  static async create(
    config: ModelConfig,
    precision: Precision,
    request: PlanRequest,
  ): Promise<MemoryPlanner> {
    const { width, height, frames } = request.native;
    const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config.vae;
    const size = {
      frames: latentFrames(frames, stride),
      height: height / scale,
      width: width / scale,
    };
    const perFrame = tokensPerFrame(config.transformer, size);
    const tokens = size.frames * perFrame;
    const flops = request.flopsPerSecond ?? 3e12;
    const wanted = request.chunkTokens ?? queryChunkTokens(config.transformer, tokens, flops);
    const promptTokens = request.promptTokens ?? [maxPromptTokens, maxPromptTokens];
    const options = { precision, promptTokens, lora: request.lora };
    const encoder = vaeEncoderMemory(config.vae, size.height, size.width);
    const cut = (most: number) => largestChunk(size.frames, perFrame, most);
    const plan = (chunkTokens: number) => planDenoise(config, size, chunkTokens, options);
    const denoising: [DenoisePlanner, ...DenoisePlanner[]] = [await plan(cut(wanted))];
    for (const chunkTokens of chunkLadder(wanted).map(cut)) {
      const smallest = denoising.at(-1)?.chunkTokens ?? 0;
      if (chunkTokens < smallest) denoising.push(await plan(chunkTokens));
    }
    const { largestBuffer = Number.POSITIVE_INFINITY } = request;
    // One stays, so that there is something to say what would be needed.
    while (denoising.length > 1 && denoising[0].largest > largestBuffer) denoising.shift();
    return new MemoryPlanner(
      config,
      { tokens, precision, native: request.native },
      size,
      { stage: 'text', ...(await planText(config, options)) },
      { stage: 'image', ...encoder, peak: encoder.total },
      denoising,
      largestBuffer,
    );
  }

  /** Everything resident, whole frames decoded where no buffer is too large for that. */
  get full(): MemoryPlan {
    const tiles = this.tilesWithin(Number.POSITIVE_INFINITY) ?? 'full';
    return this.#plan(this.denoising[0], allResident, tiles);
  }

  /** Smallest chunks, all blocks streamed, and tiles where whole frames would need more than the rest. */
  get least(): MemoryPlan {
    const residency = this.#leastResidency;
    const denoise = this.denoising.at(-1) ?? this.denoising[0];
    const others = Math.max(this.text.peak, this.image.peak, denoise.peak(residency));
    return this.#plan(denoise, residency, this.tilesWithin(others) ?? this.#smallestTiles());
  }

  /**
   * The best plan within a budget: the largest chunks with which it fits at all, then as many blocks
   * resident as fit; whole frames decoded where they fit.
   *
   * @throws KinoraError `OUT_OF_MEMORY` with both numbers where nothing fits, be it all or one buffer
   */
  fit(budget: number): MemoryPlan {
    this.#requireBuffers();
    const tiles = this.tilesWithin(budget);
    for (const denoise of tiles ? this.denoising : []) {
      const residency = this.#residencyWithin(denoise, budget);
      const plan = tiles && residency ? this.#plan(denoise, residency, tiles) : null;
      if (plan && plan.peak <= budget) return plan;
    }
    throw new KinoraError(
      'OUT_OF_MEMORY',
      `This video needs ${mebibytes(this.least.peak)} of GPU memory at least; ${mebibytes(budget)} may be used.`,
      {
        remedy: 'Close other programs that use the GPU, allow more memory, or use a smaller model.',
      },
    );
  }

  /** How to decode within a budget; null where nothing fits. */
  tilesWithin(budget: number): Tiling | 'full' | null {
    const { height, width } = this.latent;
    return planTiles(this.config.vae, height, width, budget, this.largestBuffer);
  }

  /** A plan with another denoising: the best within a budget, or the smallest. */
  withDenoise(plan: MemoryPlan, budget: number): MemoryPlan {
    for (const denoise of this.denoising) {
      const residency = this.#residencyWithin(denoise, budget);
      if (residency) return this.#plan(denoise, residency, plan.tiles);
    }
    const denoise = this.denoising.at(-1) ?? this.denoising[0];
    return this.#plan(denoise, this.#leastResidency, plan.tiles);
  }

  /** A plan with another decode. */
  withTiles(plan: MemoryPlan, tiles: Tiling | 'full'): MemoryPlan {
    const denoise = this.denoising.find((each) => each.chunkTokens === plan.chunkTokens);
    return this.#plan(denoise ?? this.denoising[0], plan.residency, tiles);
  }

  get #leastResidency(): Residency {
    // Two sets of buffers hold as much as two blocks.
    const streams = this.config.transformer.num_layers > 2;
    return streams ? { residentBlocks: 0, bufferSets: 2 } : allResident;
  }

  /** @throws KinoraError `OUT_OF_MEMORY` where each plan has a buffer that the device does not take */
  #requireBuffers(): void {
    const { largest } = this.least;
    if (largest <= this.largestBuffer) return;
    throw new KinoraError(
      'OUT_OF_MEMORY',
      `This video needs ${mebibytes(largest)} in one buffer; this GPU takes at most ${mebibytes(this.largestBuffer)} in one.`,
      { remedy: 'Make a shorter video, or use another GPU or a smaller model.' },
    );
  }

  #residencyWithin(denoise: DenoisePlanner, budget: number): Residency | null {
    const blocks = this.config.transformer.num_layers;
    if (denoise.peak(allResident) <= budget) return allResident;
    const most = (bufferSets: number) => {
      const without = denoise.peak({ residentBlocks: 0, bufferSets });
      return Math.min(blocks - 1, Math.floor((budget - without) / denoise.blockBytes));
    };
    const [two, three] = [most(2), most(3)];
    if (two < 0 || blocks <= 2) return null;
    // Where most blocks are streamed, a third set evens out reads that take longer than others.
    return three >= 0 && three < blocks / 2 && blocks - three > 3
      ? { residentBlocks: three, bufferSets: 3 }
      : { residentBlocks: two, bufferSets: 2 };
  }

  #smallestTiles(): Tiling | 'full' {
    const { height, width } = this.latent;
    let fits = vaeDecoderMemory(this.config.vae, height, width).total;
    let smallest = this.tilesWithin(fits) ?? 'full';
    for (let low = 0; fits - low > 2 ** 16; ) {
      const middle = Math.floor((low + fits) / 2);
      const tiles = this.tilesWithin(middle);
      if (tiles) [smallest, fits] = [tiles, middle];
      else low = middle;
    }
    return smallest;
  }

  #plan(denoise: DenoisePlanner, residency: Residency, tiles: Tiling | 'full'): MemoryPlan {
    const { height, width } = this.latent;
    const decoder =
      tiles === 'full'
        ? vaeDecoderMemory(this.config.vae, height, width)
        : tiledDecoderMemory(this.config.vae, height, width, tiles);
    const stages: StagePlan[] = [
      this.text,
      this.image,
      { stage: 'denoise', ...denoise.bytes(residency) },
      { stage: 'decode', ...decoder, peak: decoder.total },
    ];
    const peak = Math.max(...stages.map((stage) => stage.peak));
    const largest = Math.max(...stages.map((stage) => stage.largest));
    const blocks = this.config.transformer.num_layers;
    const { chunkTokens } = denoise;
    return { ...this.shape, chunkTokens, stages, peak, largest, blocks, residency, tiles };
  }
}

/** Tokens of the largest chunk of a clip whose first frame is held; as a bound it cuts alike. */
function largestChunk(frames: number, perFrame: number, most: number): number {
  return Math.max(...cutTokens(frames, perFrame, 1, most).map(({ count }) => count));
}

/** The native size and the longest clip of a model, for {@link PlanRequest}. */
export function longestClip(
  manifest: ModelManifest,
  size: Size,
  frames: number = manifest.maxClipFrames,
): PlanRequest['native'] {
  return { ...manifest.nativeSizes[size], frames };
}

/** A plan as it is told to the user. */
export function memoryReport(
  plan: MemoryPlan,
  budget: number,
  replans: number,
  budgetSet = false,
): MemoryReport {
  const { peak, blocks, residency, chunkTokens, tiles } = plan;
  return {
    budget,
    budgetSet,
    peak,
    blocks,
    residentBlocks: Math.min(blocks, residency.residentBlocks),
    chunkTokens,
    decodeTiles: tiles === 'full' ? 1 : tiles.rows * tiles.columns,
    replans,
  };
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 2 ** 20).toLocaleString('en')} MiB`;
}
