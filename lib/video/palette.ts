type Color = readonly [number, number, number];

/** Pixels that share one colour: a part of `order` in {@link toPalette}. */
interface Cluster {
  readonly from: number;
  readonly to: number;
  /** Red, green and blue. */
  readonly mean: Color;
  /** The direction in which its colours differ most. */
  readonly axis: Color;
  /** Sum of the squared differences to the mean along the axis. */
  readonly error: number;
}

/**
 * An image in few colours (Orchard and Bouman, "Color quantization of images", 1991). The cluster whose colours
 * differ most is divided across that direction at its mean, until there are enough; pixels take the mean of theirs.
 * All 8 bits of a channel count, so that gradients stay smooth.
 *
 * @param rgba four bytes each; A is ignored
 * @param most colours, at most 256
 */
export function toPalette(rgba: Uint8ClampedArray, most: number) {
  const order = Uint32Array.from({ length: rgba.length / 4 }, (_, pixel) => 4 * pixel);
  const clusters = [measure(rgba, order, 0, order.length)];
  while (clusters.length < most) {
    const worst = clusters.reduce((a, b) => (b.error > a.error ? b : a));
    const { from, to, mean, axis } = worst;
    const limit = dot(mean, axis);
    let middle = from;
    for (let at = from; at < to; at += 1) {
      const pixel = order[at] as number;
      if (dot(rgba, axis, pixel) > limit) continue;
      order[at] = order[middle] as number;
      order[middle] = pixel;
      middle += 1;
    }
    // All pixels have the same colour, but for rounding.
    if (middle === from || middle === to) break;
    clusters[clusters.indexOf(worst)] = measure(rgba, order, from, middle);
    clusters.push(measure(rgba, order, middle, to));
  }
  const indices = new Uint8Array(order.length);
  for (const [index, { from, to }] of clusters.entries()) {
    for (const pixel of order.subarray(from, to)) indices[pixel / 4] = index;
  }
  return { palette: clusters.map(({ mean }) => mean.map(Math.round)), indices };
}

function measure(rgba: Uint8ClampedArray, order: Uint32Array, from: number, to: number): Cluster {
  let [red, green, blue, rr, gg, bb, rg, rb, gb] = [0, 0, 0, 0, 0, 0, 0, 0, 0];
  for (let at = from; at < to; at += 1) {
    const pixel = order[at] as number;
    const r = rgba[pixel] as number;
    const g = rgba[pixel + 1] as number;
    const b = rgba[pixel + 2] as number;
    red += r;
    green += g;
    blue += b;
    rr += r * r;
    gg += g * g;
    bb += b * b;
    rg += r * g;
    rb += r * b;
    gb += g * b;
  }
  const count = to - from;
  const [r, g, b] = [red / count, green / count, blue / count];
  const scatter: readonly Color[] = [
    [rr - red * r, rg - red * g, rb - red * b],
    [rg - red * g, gg - green * g, gb - green * b],
    [rb - red * b, gb - green * b, bb - blue * b],
  ];
  // The largest eigenvalue and its vector, by power iteration.
  let axis: Color = [0.5, 0.7, 0.3];
  let error = 0;
  for (let n = 0; n < 8; n += 1) {
    const next: Color = [dot(scatter[0], axis), dot(scatter[1], axis), dot(scatter[2], axis)];
    error = Math.hypot(...next);
    if (error > 0) axis = [next[0] / error, next[1] / error, next[2] / error];
  }
  return { from, to, mean: [r, g, b], axis, error };
}

function dot(values: ArrayLike<number> = [], axis: Color, at = 0): number {
  const [a = 0, b = 0, c = 0] = [values[at], values[at + 1], values[at + 2]];
  return a * axis[0] + b * axis[1] + c * axis[2];
}
