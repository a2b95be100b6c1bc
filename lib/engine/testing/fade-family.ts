import { at, type ModelManifest } from '../../contract';
import { type Backend, type DeviceBytes, type DeviceTensor, Scope } from '../../gpu';
import type { Frame, LatentSpace } from '../../pipeline/latents';
import { MemoryPlanner } from '../../pipeline/memory/plan';
import type {
  ClipConditions,
  ClipDenoiser,
  ClipToDecode,
  Denoiser,
  ModelFamily,
  PlanRequest,
  VideoModel,
} from '../../pipeline/model';

/*
 * A second model family, as small as one can be: its latents are one value per frame and 32×32 pixels, the
 * brightness of the picture, and the velocity leads from noise to a brightness that falls from 1 to 0. It
 * shows that the engine knows no model but through the interface.
 */

const space: LatentSpace = {
  channels: 1,
  strides: { space: 32, time: 8 },
  preview: { matrix: [[1, 1, 1]], bias: [0, 0, 0] },
};

const nothing: DeviceBytes = {
  weights: 0,
  activations: 0,
  caches: 0,
  runtime: 0,
  peak: 2 ** 20,
  largest: 2 ** 20,
};

const little = { flops: 1, calls: 1 };

class FadeClip implements ClipDenoiser {
  readonly rowWidth = 1;

  constructor(
    readonly scope: Scope,
    readonly clip: ClipConditions,
  ) {}

  /** The first frame is fixed: it is fully bright. */
  get #fixed(): number {
    return this.clip.size.height * this.clip.size.width;
  }

  pack(latents: Float32Array): Float32Array {
    return latents.subarray(this.#fixed);
  }

  unpack(rows: Float32Array): Float32Array {
    const latents = new Float32Array(this.#fixed + rows.length).fill(1);
    latents.set(rows, this.#fixed);
    return latents;
  }

  async velocity(
    timestep: number,
    sample: DeviceTensor<'float32'>,
    velocities: readonly DeviceTensor<'float32'>[],
  ): Promise<void> {
    const { backend } = this.scope;
    const x = await backend.read(sample);
    const { ramp } = this.clip.image;
    if (ramp?.length !== this.clip.size.frames) throw new TypeError('conditions of another clip');
    // v = (x − clean) / σ leads straight to the clean latents.
    const v = x.map((value, i) => {
      const clean = at(ramp, 1 + Math.floor(i / this.#fixed));
      return (value - clean) / Math.max(timestep / 1000, 1e-3);
    });
    for (const target of velocities) backend.write(target, v);
  }

  dispose(): void {
    this.scope.dispose();
  }
}

class Fade implements VideoModel {
  readonly installed = false;
  readonly fingerprint = 'fade';
  readonly latents = space;
  readonly decoders = ['full'] as const;
  readonly triggerWords = [];
  readonly adapter = null;
  /** The picture that fades; a run encodes it before it decodes. */
  #picture: Frame | null = null;

  constructor(readonly manifest: ModelManifest) {}

  computation() {
    return { pass: little, decode: little };
  }

  weightBytes(): number {
    return 0;
  }

  async withLoras(): Promise<VideoModel> {
    return this;
  }

  async tokenize(prompts: readonly string[]) {
    return prompts.map((prompt) => [...prompt].map((character) => character.codePointAt(0) ?? 0));
  }

  async promptMeter() {
    return ({ length }: string) => ({ tokens: length, limit: 512, kept: length });
  }

  planMemory(request: PlanRequest): Promise<MemoryPlanner> {
    return plan(request);
  }

  async encodeText(_: unknown, prompts: readonly (readonly number[])[]): Promise<Float32Array[]> {
    return prompts.map((ids) => Float32Array.from(ids));
  }

  /** @returns brightness of each latent frame of the clip */
  async encodeImage(_: unknown, image: Frame, frames: number) {
    this.#picture = { ...image, data: image.data.slice() };
    const last = (frames - 1) / space.strides.time;
    return { ramp: Float32Array.from({ length: last + 1 }, (_, frame) => 1 - frame / last) };
  }

  async loadDenoiser(backend: Backend): Promise<Denoiser> {
    return {
      prepare: async (clip) => new FadeClip(new Scope(backend), clip),
      stop: async () => undefined,
      dispose: () => undefined,
    };
  }

  async *decode(_: unknown, { size, latents }: ClipToDecode) {
    const picture = this.#picture;
    if (!picture) throw new TypeError('no image was encoded');
    const plane = size.height * size.width;
    const frames = 1 + (size.frames - 1) * space.strides.time;
    for (let f = 0; f < frames; f++) {
      const latentFrame = Math.ceil(f / space.strides.time);
      const brightness = latents[latentFrame * plane] ?? Number.NaN;
      yield picture.data.map((value) => (value + 1) * brightness - 1);
    }
  }
}

async function plan({ native }: PlanRequest): Promise<MemoryPlanner> {
  return new MemoryPlanner({
    native,
    precision: 'f32',
    tokens: 1,
    blocks: 1,
    text: nothing,
    image: nothing,
    denoising: [{ chunkTokens: 1, largest: 0, blockBytes: 0, bytes: () => nothing }],
    decoding: [{ tiles: 'full', bytes: nothing, work: 1 }],
  });
}

export const fadeFamily: ModelFamily = {
  installation: {
    configurationFiles: [],
    optionalFiles: [],
    plan: async () => ({
      check: () => {
        throw new TypeError('it is bundled');
      },
      storedBytes: () => 0,
    }),
    recognise: () => ({ name: '', component: null }),
    inspectLora: async () => 0,
  },
  open: async (manifest) => new Fade(manifest),
  openInstalled: async (manifest) => new Fade(manifest),
  count: async () => ({
    latents: space,
    computation: () => ({ pass: little, decode: little }),
    weightBytes: () => 0,
    planMemory: plan,
  }),
};
