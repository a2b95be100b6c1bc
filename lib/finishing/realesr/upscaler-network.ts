import { add, convolution, Graph, memoised, prelu } from '../../graph';

/*
 * SRVGGNetCompact, the network of realesr-general-x4v3 (README). An image is [H, W, C] in 0…1; W_i are 3×3
 * convolutions, padded with zeros:
 *
 *   x₀ = image,  x_{i+1} = PReLU(W_i x_i + b_i),  picture = shuffle(W_n x_n + b_n) + nearest(image)
 */

/** Sizes that a file's tensors tell. */
export interface CompactConfig {
  /** C of the hidden images; 64 of realesr-general-x4v3. */
  readonly width: number;
  /** All of them, 34. Each sees one pixel further: as many pixels around one decide it. */
  readonly convolutions: number;
}

/** By how much a side grows: 4 is the network's own, 2 is its picture halved. */
export type Factor = 2 | 4;

/** Names of convolution i and of the PReLU behind it. */
export const layerName = (i: number) => `body.${2 * i}`;
export const slopeName = (i: number) => `body.${2 * i + 1}`;

/** Layers whose tensors are not those of the file (`upscaler-weights.ts`). */
export const lastLayer = 'last';
export const nearestLayer = 'nearest';

/**
 * The network for an image.
 *
 * Input: image [H, W, 4], red, green, blue and zero, as kernels of our own read four channels at a time. Output:
 * picture [H, W, 3·f²], the f×f pixels that a pixel becomes folded into channels (colour, row, column).
 */
export const compactGraph = memoised(
  ({ width, convolutions }: CompactConfig, h: number, w: number, factor: Factor): Graph => {
    const g = new Graph(`Real-ESRGAN ×${factor}`);
    const image = g.input('image', [h, w, 4]);
    let x = image;
    for (let i = 0; i < convolutions - 1; i++) {
      x = prelu(convolution(x, layerName(i), width), slopeName(i)); // [H, W, C]
    }
    const detail = convolution(x, lastLayer, 3 * factor ** 2); // [H, W, 3·f²]
    const nearest = convolution(image, nearestLayer, 3 * factor ** 2, { kernel: 1 }); // [H, W, 3·f²]
    g.output('picture', add(detail, nearest));
    return g;
  },
);
