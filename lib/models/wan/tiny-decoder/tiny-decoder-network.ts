import { at } from '../../../contract';
import {
  add,
  convolution,
  depthwisePair,
  Graph,
  imageSize,
  memoised,
  pixelShuffle,
  relu,
  upsample,
  type Value,
} from '../../../graph';
import type { ClipGraphs, LatentFrameSize } from '../vae/decoder';
import { tinyDecoderKeys, type Variant } from './keys';

/*
 * The equations of the tiny decoders, base and super (README). Images are [H, W, C]; layers with two taps see the
 * frame that they were given before, too: x_t ‖ x_{t−1}.
 */

/** Sizes of a tiny decoder, which come from its file. */
export interface TinyConfig {
  readonly variant: Variant;
  /** Channels of the latents. */
  readonly inputs: number;
  /** Channels of each stage, and behind the last one. */
  readonly widths: readonly number[];
  /** 3·p² */
  readonly outputs: number;
}

/** The first latent frame becomes four frames as well; the first three are dropped. */
const droppedFrames = 3;

function memoryBlock(x: Value, name: string, variant: Variant): Value {
  const { channels } = imageSize(x);
  if (variant === 'base') {
    const first = relu(convolution(x, `${name}.0`, channels, { taps: 2 })); // [H, W, C]
    const second = relu(convolution(first, `${name}.2`, channels)); // [H, W, C]
    return relu(add(convolution(second, `${name}.4`, channels), x)); // [H, W, C]
  }
  const mixed = depthwisePair(x, `${name}.0`); // [H, W, 2C]
  const wide = relu(convolution(mixed, `${name}.1`, 4 * channels, { kernel: 1 })); // [H, W, 4C]
  return add(convolution(wide, `${name}.3`, channels, { kernel: 1, bias: false }), x); // [H, W, C]
}

/** TGrow: a 1×1 convolution gives one of the frames that a frame becomes. */
function grown(x: Value, index: number, frame: number, frames: number): Value {
  const part = { index: frame, of: frames };
  const { channels } = imageSize(x);
  return convolution(x, `decoder.${index}.conv`, channels, { kernel: 1, bias: false, part }); // [H, W, C]
}

/**
 * The stages from `index` on, depth first.
 *
 * @param frame which of the frames of a latent frame `input` is
 */
function stages(
  g: Graph,
  config: TinyConfig,
  index: number,
  input: Value,
  frame: number,
  first: boolean,
): void {
  const { variant, widths, outputs } = config;
  const keys = tinyDecoderKeys[variant];
  const stage = at(keys.stages, index);
  const isLast = index === keys.stages.length - 1;
  const name = `decoder.${stage.convolution}`;
  const width = at(widths, index + 1);
  let x = input;
  for (const block of stage.blocks) x = memoryBlock(x, `decoder.${block}.conv`, variant); // [H, W, C]
  const parts = Array.from({ length: stage.frames }, (_, part) => part).filter(
    (part) => !isLast || !first || frame * stage.frames + part >= droppedFrames,
  );
  if (parts.length === 0) return;
  const large =
    variant === 'super' ? pixelShuffle(relu(convolution(x, name, 4 * width))) : undefined; // [2H, 2W, C′]
  for (const part of parts) {
    const y = large
      ? grown(large, stage.grow, part, stage.frames)
      : convolution(upsample(grown(x, stage.grow, part, stage.frames)), name, width, {
          bias: false,
        }); // [2H, 2W, C′]
    if (!isLast) stages(g, config, index + 1, y, frame * stage.frames + part, first);
    else {
      const active = variant === 'base' ? relu(y) : y; // [2H, 2W, C′]
      g.output(`frame ${g.outputs.size}`, convolution(active, `decoder.${keys.last}`, outputs)); // [8h, 8w, 3·p²]
    }
  }
}

/**
 * The decoder for one latent frame.
 *
 * Input: latent [h, w, z], limited by {@link softClamp} for the base variant. Outputs: frames [8h, 8w, 3·p²], p×p
 * pixels folded into channels; one of the first latent frame, four of each later one.
 *
 * @param first whether it is the clip's first
 */
const tinyDecoderFrame = memoised(
  (config: TinyConfig, h: number, w: number, first: boolean): Graph => {
    const { variant, inputs, widths } = config;
    const g = new Graph(`tiny decoder, ${variant}`);
    const latent = g.input('latent', [h, w, inputs]);
    const name = `decoder.${tinyDecoderKeys[variant].first}`;
    const x =
      variant === 'base'
        ? relu(convolution(latent, name, at(widths, 0)))
        : convolution(latent, name, at(widths, 0), { kernel: 1, bias: false }); // [h, w, C]
    stages(g, config, 0, x, 0, first);
    return g;
  },
);

/** The graphs of a clip's latent frames. */
export function tinyDecoderGraphs(
  config: TinyConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
): ClipGraphs {
  return [
    tinyDecoderFrame(config, latentHeight, latentWidth, true),
    tinyDecoderFrame(config, latentHeight, latentWidth, false),
  ];
}

/** `3·tanh(x/3)`, what the base variant does first. */
export function softClamp(x: number): number {
  return 3 * Math.tanh(x / 3);
}
