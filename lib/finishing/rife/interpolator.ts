import { at } from '../../contract';
import { type Backend, type DeviceTensor, planarGraph, Scope } from '../../gpu';
import type { Frame } from '../../pipeline/latents';
import { type Checkpoint, openSafetensors, type WeightFile } from '../../weights';
import { isCut } from './cuts';
import {
  blendGraph,
  blockGraph,
  headGraph,
  keptChannels,
  type RifeConfig,
  sizeStep,
} from './interpolator-network';
import { canonicalNames, loadRife, type RifeWeights, rifeConfig } from './interpolator-weights';

/** Makes frames between frames. */
export interface Interpolator {
  /**
   * The frame in the middle of two, or null where a scene ends between them. Where `a` is the `b` of the call before,
   * its features are those of that call.
   *
   * @throws the signal's reason soon after it aborts
   * @throws KinoraError `OUT_OF_MEMORY`, `DEVICE_LOST`
   */
  between(a: Frame, b: Frame, signal: AbortSignal): Promise<Frame | null>;
  /** Frees the device's memory. The next pair takes it again. */
  dispose(): void;
}

/**
 * Opens RIFE 4.25 or 4.26. Nothing is on the device before the first pair.
 *
 * @param file safetensors
 * @throws KinoraError `MODEL_FILE_INVALID`, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openInterpolator(backend: Backend, file: WeightFile): Promise<Interpolator> {
  return openRife(backend, file);
}

/** {@link openInterpolator}, with its stages. */
export async function openRife(backend: Backend, file: WeightFile): Promise<Rife> {
  const checkpoint = canonicalNames(await openSafetensors(file));
  return new Rife(backend, checkpoint, rifeConfig(checkpoint));
}

type Tensor = DeviceTensor<'float32'>;

/** A frame on the device. */
interface Place {
  frame: Frame | null;
  readonly image: Tensor;
  readonly features: Tensor;
}

/** Flow, mask and kept channels. */
type State = Readonly<Record<'flow' | 'mask' | 'kept', Tensor>>;

/** The network on the device, for frames of one size. */
interface Loaded {
  readonly scope: Scope;
  readonly width: number;
  readonly height: number;
  /** With what is padded. */
  readonly paddedWidth: number;
  readonly paddedHeight: number;
  readonly weights: RifeWeights;
  readonly places: readonly [Place, Place];
  readonly time: Tensor;
  /** A block reads one and writes the other. */
  readonly states: readonly [State, State];
  readonly middle: Tensor;
}

/** Called with a stage and its result: `features0`, `features1`, `flow_block0` … `flow_block4` after each block. */
type OnStage = (stage: string, tensor: Tensor) => Promise<void>;

/** RIFE by the runtime. */
export class Rife implements Interpolator {
  #loaded: Loaded | null = null;

  constructor(
    readonly backend: Backend,
    readonly checkpoint: Checkpoint,
    readonly config: RifeConfig,
  ) {}

  async between(a: Frame, b: Frame, signal: AbortSignal): Promise<Frame | null> {
    return isCut(a, b) ? null : this.middle(a, b, signal);
  }

  /** The frame in the middle of two of one scene. */
  async middle(
    a: Frame,
    b: Frame,
    signal: AbortSignal,
    onStage: OnStage = async () => undefined,
  ): Promise<Frame> {
    if (a.width !== b.width || a.height !== b.height) {
      throw new TypeError('frames of two sizes have none between them');
    }
    try {
      const loaded = await this.#load(a);
      const { places, weights, time, states, middle, paddedWidth: w, paddedHeight: h } = loaded;
      const { backend, config } = this;
      const first = places.find(({ frame }) => frame === a) ?? places[0];
      const second = first === places[0] ? places[1] : places[0];
      for (const [place, frame] of [
        [first, a],
        [second, b],
      ] as const) {
        signal.throwIfAborted();
        await this.#encode(loaded, place, frame);
      }
      await onStage('features0', first.features);
      await onStage('features1', second.features);

      const images = { image0: first.image, image1: second.image };
      const features = { features0: first.features, features1: second.features };
      for (const i of config.widths.keys()) {
        signal.throwIfAborted();
        const [from, to] = i % 2 === 0 ? states : [states[1], states[0]];
        const inputs = Object.assign({ time }, images, features, weights.blocks[i], i > 0 && from);
        const next = { flowNext: to.flow, maskNext: to.mask, keptNext: to.kept };
        await backend.run(planarGraph(blockGraph(config, i, h, w)), inputs, next);
        await onStage(`flow_block${i}`, to.flow);
      }
      const { flow, mask } = at(states, config.widths.length % 2);
      const graph = planarGraph(blendGraph(h, w));
      await backend.run(graph, { ...images, flow, mask }, { middle });
      return cropped(await backend.read(middle), loaded);
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  /** Brings a frame to its place on the device, unless it is there. */
  async #encode(loaded: Loaded, place: Place, frame: Frame): Promise<void> {
    if (place.frame === frame) return;
    const { backend, config } = this;
    const { paddedHeight: h, paddedWidth: w } = loaded;
    place.frame = null;
    backend.write(place.image, padded(frame, loaded));
    const inputs = { ...loaded.weights.head, image: place.image };
    const graph = planarGraph(headGraph(config, h, w));
    await backend.run(graph, inputs, { features: place.features });
    place.frame = frame;
  }

  async #load({ width, height, data }: Frame): Promise<Loaded> {
    if (data.length !== 3 * width * height) {
      throw new TypeError(`${data.length} numbers are no frame of ${width}×${height}`);
    }
    if (this.#loaded?.width === width && this.#loaded.height === height) return this.#loaded;
    this.dispose();
    const [w, h] = [width, height].map((size) => Math.ceil(size / sizeStep) * sizeStep) as [
      number,
      number,
    ];
    const scope = new Scope(this.backend);
    const plane = (channels: number, data?: Float32Array) =>
      scope.float32([1, channels, h, w], 'activations', data);
    try {
      const place = (): Place => ({
        frame: null,
        image: plane(3),
        features: plane(this.config.features),
      });
      const state = () => ({ flow: plane(4), mask: plane(1), kept: plane(keptChannels) });
      this.#loaded = {
        scope,
        width,
        height,
        paddedWidth: w,
        paddedHeight: h,
        weights: await loadRife(scope, this.checkpoint, this.config),
        places: [place(), place()],
        time: plane(1, new Float32Array(h * w).fill(0.5)),
        states: [state(), state()],
        middle: plane(3),
      };
      return this.#loaded;
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  dispose(): void {
    this.#loaded?.scope.dispose();
    this.#loaded = null;
  }
}

/** A frame in 0…1; right and below it goes on as it ends. */
function padded(frame: Frame, { width, height, paddedWidth, paddedHeight }: Loaded): Float32Array {
  const out = new Float32Array(3 * paddedWidth * paddedHeight);
  for (let line = 0; line < 3 * paddedHeight; line++) {
    const [c, y] = [Math.floor(line / paddedHeight), line % paddedHeight];
    const from = (c * height + Math.min(y, height - 1)) * width;
    for (let x = 0; x < paddedWidth; x++) {
      out[line * paddedWidth + x] = ((frame.data[from + Math.min(x, width - 1)] as number) + 1) / 2;
    }
  }
  return out;
}

/** The frame in −1…1 without what was padded. */
function cropped(
  values: Float32Array,
  { width, height, paddedWidth, paddedHeight }: Loaded,
): Frame {
  const data = new Float32Array(3 * width * height);
  for (let line = 0; line < 3 * height; line++) {
    const from = (Math.floor(line / height) * paddedHeight + (line % height)) * paddedWidth;
    for (let x = 0; x < width; x++) {
      data[line * width + x] = 2 * (values[from + x] as number) - 1;
    }
  }
  return { data, width, height };
}
