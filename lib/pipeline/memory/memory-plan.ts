import {
  KinoraError,
  type MemoryReport,
  type ModelManifest,
  type NativeSizes,
  nativeSizeOf,
  type Precision,
  type Size,
} from '../../contract';
import type { DeviceBytes } from '../../gpu';
import type { ClipSize } from '../latents';
import type { PlanRequest } from '../model';
import type { Sampling } from '../profiles';
import { createScheduler } from '../schedulers';

export type StageName = 'text' | 'image' | 'denoise' | 'decode';

/** Device bytes of one stage. */
export interface StagePlan extends DeviceBytes {
  readonly stage: StageName;
}

/** Which blocks of the denoiser are on the device all the time. */
export interface Residency {
  /** Blocks that stay; the others are streamed from storage, pass by pass. */
  readonly residentBlocks: number;
  /** Sets of buffers that the streamed blocks take turns in, 2 or 3. */
  readonly bufferSets: number;
}

/** Everything stays. */
export const allResident: Residency = {
  residentBlocks: Number.POSITIVE_INFINITY,
  bufferSets: 0,
};

/** A grid of tiles of equal size that cover a latent frame. */
export interface Tiling {
  readonly rows: number;
  readonly columns: number;
  /** Latent positions that neighbours share, at least; rounding may make it more. */
  readonly overlap: number;
}

/** How a clip is decoded: in whole frames or in tiles. */
export type DecodeTiles = Tiling | 'full';

/** Memory of denoising in chunks of one size, by what stays on the device. */
export interface DenoiseCosts {
  /** Tokens that go through a block together, at most. */
  readonly chunkTokens: number;
  /** The most in one buffer; what stays on the device does not change it. */
  readonly largest: number;
  /** One block's weights. */
  readonly blockBytes: number;
  bytes(residency: Residency): DeviceBytes;
}

/** A way to decode a clip. */
export interface DecodeOption {
  readonly tiles: DecodeTiles;
  readonly bytes: DeviceBytes;
  /** The work as a multiple of that for whole frames. */
  readonly work: number;
}

/** The bytes that a model has counted of its stages. */
export interface StageCosts {
  readonly native: ClipSize;
  readonly precision: Precision;
  readonly tokens: number;
  /** Blocks of the denoiser. */
  readonly blocks: number;
  readonly text: DeviceBytes;
  readonly image: DeviceBytes;
  /** In chunks of the wanted size, and in ever smaller ones. */
  readonly denoising: readonly [DenoiseCosts, ...DenoiseCosts[]];
  /** Ways to decode, the best one first. */
  readonly decoding: readonly DecodeOption[];
  /** Memory of decoding a preview beside the denoising; absent where no decoder is fast enough for it. */
  readonly preview?: DeviceBytes;
}

/** How a clip fits the memory of a device. Sizes are bytes. */
export interface MemoryPlan {
  readonly stages: readonly StagePlan[];
  /** The largest stage: each frees its memory before the next one starts. */
  readonly peak: number;
  /** The most in one buffer. */
  readonly largest: number;
  readonly tokens: number;
  /** Tokens that go through a block together, at most. */
  readonly chunkTokens: number;
  readonly native: ClipSize;
  readonly precision: Precision;
  readonly blocks: number;
  readonly residency: Residency;
  /** How the clip is decoded. */
  readonly tiles: DecodeTiles;
  /** Its cost, as a multiple of whole frames. */
  readonly decodeWork: number;
  /** Whether there is room to decode previews while the denoiser is on the device. */
  readonly previews: boolean;
}

/**
 * Chooses how the stages of a clip fit the memory of a device, from what the model counted. Nothing is
 * run for it.
 *
 * The choices of a plan change no result: how many blocks stay, in how many sets of buffers the others take turns,
 * and how many tokens go through a block together. Only tiles of the decode do, slightly, and they are the last
 * resort.
 *
 * A device bounds one buffer as well as their sum: `maxBufferSize`. `maxStorageBufferBindingSize`, the limit of one
 * binding, is no bound: the runtime binds a larger buffer in pieces.
 */
export class MemoryPlanner {
  readonly #denoising: readonly [DenoiseCosts, ...DenoiseCosts[]];

  /** @param largestBuffer most bytes that the device takes in one buffer */
  constructor(
    readonly costs: StageCosts,
    readonly largestBuffer = Number.POSITIVE_INFINITY,
  ) {
    const [first, ...smaller] = costs.denoising;
    const denoising: [DenoiseCosts, ...DenoiseCosts[]] = [first, ...smaller];
    // One entry stays, so that an error can say how much memory is needed.
    while (denoising.length > 1 && denoising[0].largest > largestBuffer) denoising.shift();
    this.#denoising = denoising;
  }

  /** Everything resident, whole frames decoded where no buffer is too large for that. */
  get full(): MemoryPlan {
    const tiles = this.tilesWithin(Number.POSITIVE_INFINITY) ?? 'full';
    return this.#plan(this.#denoising[0], allResident, tiles, true);
  }

  /** Smallest chunks, all blocks streamed, and tiles where whole frames would need more than the rest. */
  get least(): MemoryPlan {
    const residency = this.#leastResidency;
    const denoise = this.#denoising.at(-1) ?? this.#denoising[0];
    const others = Math.max(
      this.costs.text.peak,
      this.costs.image.peak,
      denoise.bytes(residency).peak,
    );
    return this.#plan(denoise, residency, this.tilesWithin(others) ?? this.#leastDecoding.tiles);
  }

  /**
   * The best plan within a budget: the largest chunks with which it fits at all, then as many blocks
   * resident as fit; whole frames decoded where they fit; previews decoded in the room that is left.
   *
   * @throws KinoraError `OUT_OF_MEMORY` with both numbers where nothing fits, be it all or one buffer
   */
  fit(budget: number): MemoryPlan {
    this.#requireBuffers();
    const tiles = this.tilesWithin(budget);
    for (const denoise of tiles ? this.#denoising : []) {
      const residency = this.#residencyWithin(denoise, budget);
      if (!tiles || !residency) continue;
      const fitting = [true, false].map((previews) =>
        this.#plan(denoise, residency, tiles, previews),
      );
      const plan = fitting.find(({ peak }) => peak <= budget);
      if (plan) return plan;
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
  tilesWithin(budget: number): DecodeTiles | null {
    const fits = ({ bytes }: DecodeOption) =>
      bytes.peak <= budget && bytes.largest <= this.largestBuffer;
    return this.costs.decoding.find(fits)?.tiles ?? null;
  }

  /** A plan with another denoising: the best within a budget, or the smallest. */
  withDenoise(plan: MemoryPlan, budget: number): MemoryPlan {
    for (const denoise of this.#denoising) {
      const residency = this.#residencyWithin(denoise, budget);
      if (residency) return this.#plan(denoise, residency, plan.tiles);
    }
    const denoise = this.#denoising.at(-1) ?? this.#denoising[0];
    return this.#plan(denoise, this.#leastResidency, plan.tiles);
  }

  /** A plan with another decode. */
  withTiles(plan: MemoryPlan, tiles: DecodeTiles): MemoryPlan {
    const denoise = this.#denoising.find((each) => each.chunkTokens === plan.chunkTokens);
    return this.#plan(denoise ?? this.#denoising[0], plan.residency, tiles, plan.previews);
  }

  get #leastResidency(): Residency {
    // Two sets of buffers hold as much as two blocks.
    const streams = this.costs.blocks > 2;
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

  #residencyWithin(denoise: DenoiseCosts, budget: number): Residency | null {
    const blocks = this.costs.blocks;
    if (denoise.bytes(allResident).peak <= budget) return allResident;
    // A LoRA makes some blocks larger than others.
    const most = (bufferSets: number) => {
      let residentBlocks = blocks - 1;
      const fits = () => denoise.bytes({ residentBlocks, bufferSets }).peak <= budget;
      while (residentBlocks >= 0 && !fits()) residentBlocks--;
      return residentBlocks;
    };
    const [two, three] = [most(2), most(3)];
    if (two < 0 || blocks <= 2) return null;
    // If most blocks are streamed, a third set evens out reads that take longer than others.
    return three >= 0 && three < blocks / 2 && blocks - three > 3
      ? { residentBlocks: three, bufferSets: 3 }
      : { residentBlocks: two, bufferSets: 2 };
  }

  get #leastDecoding(): DecodeOption {
    return this.costs.decoding.reduce((a, b) => (b.bytes.peak < a.bytes.peak ? b : a));
  }

  #plan(
    denoise: DenoiseCosts,
    residency: Residency,
    tiles: DecodeTiles,
    wantsPreviews = false,
  ): MemoryPlan {
    const { native, precision, tokens, blocks, text, image, preview } = this.costs;
    const previews = wantsPreviews && preview !== undefined;
    const denoising = denoise.bytes(residency);
    const decoding = this.costs.decoding.find((option) => option.tiles === tiles);
    if (!decoding) throw new TypeError('no plan decodes in these tiles');
    const stages: StagePlan[] = [
      { stage: 'text', ...text },
      { stage: 'image', ...image },
      { stage: 'denoise', ...(previews ? together(denoising, preview) : denoising) },
      { stage: 'decode', ...decoding.bytes },
    ];
    return {
      native,
      precision,
      tokens,
      blocks,
      stages,
      peak: Math.max(...stages.map((stage) => stage.peak)),
      largest: Math.max(...stages.map((stage) => stage.largest)),
      chunkTokens: denoise.chunkTokens,
      residency,
      tiles,
      decodeWork: decoding.work,
      previews,
    };
  }
}

/** Memory of two things that are on the device at the same time. */
function together(a: DeviceBytes, b: DeviceBytes): DeviceBytes {
  return {
    weights: a.weights + b.weights,
    activations: a.activations + b.activations,
    caches: a.caches + b.caches,
    runtime: a.runtime + b.runtime,
    peak: a.peak + b.peak,
    largest: Math.max(a.largest, b.largest),
  };
}

/** The native size and the longest clip of a model under a profile. */
export function longestClip(
  manifest: ModelManifest,
  size: Size,
  frames: number = manifest.maxClipFrames,
  profile: { readonly nativeSizes?: NativeSizes | undefined } = manifest.profiles.standard,
): ClipSize {
  return { ...nativeSizeOf(manifest, profile, size), frames };
}

/** What a model is asked to plan the memory for, of a run's longest clip and how it is sampled. */
export function planRequestOf(sampling: Sampling, native: ClipSize): PlanRequest {
  const { scheduler, steps, flowShift, decoder, cache, guidanceScale } = sampling;
  const guided = guidanceScale > 1;
  const { stochastic, evaluations } = createScheduler({ ...scheduler, steps, flowShift });
  const reusesBlocks = cache?.kind === 'magcache';
  return { native, decoder, guided, reusesBlocks, stochastic, evaluations };
}

/** A plan as it is reported to the user. */
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
