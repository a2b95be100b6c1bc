/** Pixels that share one colour: a part of `order` in {@link toPalette}. */
interface Cluster {
  readonly from: number;
  readonly to: number;
  /** Red, green and blue. */
  readonly mean: readonly number[];
  /** The one of them that differs most, and the sum of its squared differences to the mean. */
  readonly channel: number;
  readonly error: number;
}

/**
 * An image in few colours. The cluster of which a channel differs most is divided at the mean of that channel, until
 * there are enough (Wan, Wong and Prusinkiewicz, "An algorithm for multidimensional data clustering", 1988); pixels
 * take the mean of theirs. All 8 bits of a channel count, so that gradients stay smooth.
 *
 * @param rgba four bytes each; A is ignored
 * @param most colours, at most 256
 */
export function toPalette(rgba: Uint8ClampedArray, most: number) {
  const order = Uint32Array.from({ length: rgba.length / 4 }, (_, pixel) => 4 * pixel);
  const clusters = [measure(rgba, order, 0, order.length)];
  while (clusters.length < most) {
    const worst = clusters.reduce((a, b) => (b.error > a.error ? b : a));
    const { from, to, mean, channel } = worst;
    const limit = mean[channel] as number;
    let middle = from;
    for (let at = from; at < to; at += 1) {
      const pixel = order[at] as number;
      if ((rgba[pixel + channel] as number) > limit) continue;
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
  const pixels = order.subarray(from, to);
  const channels = [0, 1, 2].map((channel) => {
    let [sum, squares] = [0, 0];
    for (const pixel of pixels) {
      const value = rgba[pixel + channel] as number;
      sum += value;
      squares += value * value;
    }
    return { mean: sum / pixels.length, error: squares - sum ** 2 / pixels.length };
  });
  const errors = channels.map(({ error }) => error);
  const error = Math.max(...errors);
  const mean = channels.map((channel) => channel.mean);
  return { from, to, mean, channel: errors.indexOf(error), error };
}
