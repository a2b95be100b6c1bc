/** How pixels of a block are folded into channels: which of the two offsets changes slower. */
export type FoldOrder = 'column-row' | 'row-column';

/**
 * Planar image [C, H, W] → [H/p, W/p, C·p²], pixels of p×p blocks folded into channels
 * `(c·p + slow)·p + fast`. The VAE's patchify has the column as the slow one (README, "Patchify").
 */
export function foldPixels(
  image: Float32Array,
  height: number,
  width: number,
  patch: number,
  order: FoldOrder,
): Float32Array<ArrayBuffer> {
  const folded = new Float32Array(image.length);
  eachPixel(image.length, height, width, patch, order, (planar, channelsLast) => {
    folded[channelsLast] = image[planar] as number;
  });
  return folded;
}

/** The inverse of {@link foldPixels}, limited to [low, high]; height and width of the result. */
export function unfoldPixels(
  folded: Float32Array,
  height: number,
  width: number,
  patch: number,
  order: FoldOrder,
  [low, high]: readonly [number, number],
): Float32Array<ArrayBuffer> {
  const image = new Float32Array(folded.length);
  eachPixel(folded.length, height, width, patch, order, (planar, channelsLast) => {
    const value = folded[channelsLast] as number;
    // Written so that NaN stays NaN.
    image[planar] = value < low ? low : value > high ? high : value;
  });
  return image;
}

function eachPixel(
  count: number,
  height: number,
  width: number,
  patch: number,
  order: FoldOrder,
  visit: (planar: number, channelsLast: number) => void,
): void {
  const plane = height * width;
  const channels = (count / plane) * patch * patch;
  const columns = width / patch;
  for (let y = 0; y < height; y++) {
    const [blockRow, row] = [Math.floor(y / patch), y % patch];
    for (let x = 0; x < width; x++) {
      const [blockColumn, column] = [Math.floor(x / patch), x % patch];
      const [slow, fast] = order === 'column-row' ? [column, row] : [row, column];
      const block = (blockRow * columns + blockColumn) * channels;
      for (let c = 0; c < count / plane; c++) {
        visit(c * plane + y * width + x, block + (c * patch + slow) * patch + fast);
      }
    }
  }
}

/** [C, H·W] → [H·W, C] with `scale·x + shift` per channel. */
export function channelsLast(
  planar: Float32Array,
  scale: (channel: number) => number,
  shift: (channel: number) => number,
  channels: number,
): Float32Array<ArrayBuffer> {
  const pixels = planar.length / channels;
  const out = new Float32Array(planar.length);
  for (let c = 0; c < channels; c++) {
    const [s, t] = [scale(c), shift(c)];
    for (let i = 0; i < pixels; i++)
      out[i * channels + c] = (planar[c * pixels + i] as number) * s + t;
  }
  return out;
}
