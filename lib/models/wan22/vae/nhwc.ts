import { concat, depthToSpace, transpose, type Value } from '../../../onnx';

/** How a backend wants convolutions; see `Backend.convLayout`. */
export type Layout = 'nhwc' | 'nchw';

type Float = Value<'float32'>;

const toChannelsFirst = (x: Float) => transpose(x, [0, 3, 1, 2]);
const toChannelsLast = (x: Float) => transpose(x, [0, 2, 3, 1]);

/** Four images of one size as the pixels (0,0), (0,1), (1,0), (1,1) of 2×2 blocks. */
export function interleave(phases: readonly Float[], layout: Layout): Float {
  return pixelShuffle(concat(phases, 3), layout);
}

/** [1, H, W, 4·C] → [1, 2H, 2W, C]; channel `(row·2 + column)·C + c` goes to (row, column). */
export function pixelShuffle(x: Float, layout: Layout): Float {
  if (layout === 'nhwc') return depthToSpace(x, 2, layout);
  return toChannelsLast(depthToSpace(toChannelsFirst(x), 2, layout));
}
