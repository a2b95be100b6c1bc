/*
 * Plain loops in double precision: the expected result of each kernel, for the self-test and for the check of our own kernels.
 */

type Numbers = ArrayLike<number>;

const at = (values: Numbers, index: number): number => values[index] ?? Number.NaN;

/** The same pseudo-random numbers in [−1, 1) in each run. */
export function numbers(count: number, salt: number): Float32Array<ArrayBuffer> {
  let state = Math.imul(salt + 1, 0x9e3779b1) >>> 0;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2147483648 - 1;
  });
}

/** What softmax makes of logits, before its division by their sum. */
function softmaxWeights(logits: Float64Array): Float64Array {
  const most = largest(logits);
  return logits.map((logit) => Math.exp(logit - most));
}

export function largest(values: Float64Array): number {
  return values.reduce((a, b) => Math.max(a, b));
}

/**
 * softmax(q·kᵀ/√size + bias)·v; q [rows, heads·size], k, v [keys, heads·size], bias [rows, keys], or one per head.
 *
 * @param weightsOf takes the logits of a row
 */
export function attention(
  q: Numbers,
  k: Numbers,
  v: Numbers,
  bias: Numbers,
  { rows, keys, heads, size }: { rows: number; keys: number; heads: number; size: number },
  weightsOf = softmaxWeights,
): Float64Array {
  const width = heads * size;
  const out = new Float64Array(rows * width);
  const perHead = bias.length > rows * keys ? rows * keys : 0;
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const start = row * width + head * size;
      const logits = Float64Array.from({ length: keys }, (_, key) => {
        let dot = 0;
        const other = key * width + head * size;
        for (let c = 0; c < size; c++) dot += at(q, start + c) * at(k, other + c);
        return dot / Math.sqrt(size) + at(bias, head * perHead + row * keys + key);
      });
      const weights = weightsOf(logits);
      const sum = weights.reduce((a, b) => a + b);
      for (let key = 0; key < keys; key++) {
        const weight = at(weights, key) / sum;
        const other = key * width + head * size;
        for (let c = 0; c < size; c++) {
          out[start + c] = at(out, start + c) + weight * at(v, other + c);
        }
      }
    }
  }
  return out;
}

/** Weights of blocks of 32: bytes around 128, or nibbles around 8 with the even element below. */
export function dequantise(values: Uint8Array, scales: Numbers, bits: 8 | 4): Float64Array {
  const perByte = 8 / bits;
  return Float64Array.from({ length: values.length * perByte }, (_, i) => {
    const byte = at(values, Math.floor(i / perByte));
    const level = bits === 8 ? byte - 128 : ((byte >> (4 * (i % 2))) & 15) - 8;
    return level * at(scales, Math.floor(i / 32));
  });
}

/** x·Wᵀ + b. */
export function linear(
  x: Numbers,
  weight: Numbers,
  bias: Numbers,
  { rows, inner, columns }: { rows: number; inner: number; columns: number },
): Float64Array {
  const out = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      let sum = at(bias, column);
      for (let i = 0; i < inner; i++)
        sum += at(x, row * inner + i) * at(weight, column * inner + i);
      out[row * columns + column] = sum;
    }
  }
  return out;
}

/** 3×3 convolution with zero padding 1. */
export function convolution(
  x: Numbers,
  weight: Numbers,
  bias: Numbers,
  shape: {
    layout: 'nhwc' | 'nchw';
    images: number;
    height: number;
    width: number;
    channels: number;
    filters: number;
  },
): Float64Array {
  const { layout, images, height, width, channels, filters } = shape;
  const index = (image: number, row: number, column: number, channel: number, count: number) =>
    layout === 'nhwc'
      ? ((image * height + row) * width + column) * count + channel
      : ((image * count + channel) * height + row) * width + column;
  const out = new Float64Array(images * height * width * filters);
  for (let image = 0; image < images; image++) {
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        for (let filter = 0; filter < filters; filter++) {
          let sum = at(bias, filter);
          for (let dy = -1; dy <= 1; dy++) {
            for (let dx = -1; dx <= 1; dx++) {
              const [y, z] = [row + dy, column + dx];
              if (y < 0 || y >= height || z < 0 || z >= width) continue;
              for (let c = 0; c < channels; c++) {
                const tap = ((filter * channels + c) * 3 + dy + 1) * 3 + dx + 1;
                sum += at(x, index(image, y, z, c, channels)) * at(weight, tap);
              }
            }
          }
          out[index(image, row, column, filter, filters)] = sum;
        }
      }
    }
  }
  return out;
}

function normRows(
  x: Numbers,
  width: number,
  norm: (row: Float64Array) => Float64Array,
): Float64Array {
  const out = new Float64Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    out.set(norm(Float64Array.from({ length: width }, (_, i) => at(x, start + i))), start);
  }
  return out;
}

const mean = (values: Float64Array): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Over rows of scale.length. */
export function layerNorm(x: Numbers, scale: Numbers, bias: Numbers, epsilon: number) {
  return normRows(x, scale.length, (row) => {
    const centre = mean(row);
    const deviation = Math.sqrt(mean(row.map((value) => (value - centre) ** 2)) + epsilon);
    return row.map((value, i) => ((value - centre) / deviation) * at(scale, i) + at(bias, i));
  });
}

/** Over rows of scale.length. */
export function rmsNorm(x: Numbers, scale: Numbers, epsilon: number) {
  return normRows(x, scale.length, (row) => {
    const root = Math.sqrt(mean(row.map((value) => value * value)) + epsilon);
    return row.map((value, i) => (value / root) * at(scale, i));
  });
}

/** Interleaved pairs; x [rows, heads·2·pairs], cos and sin [rows, pairs]. */
export function rotary(
  x: Numbers,
  cos: Numbers,
  sin: Numbers,
  { heads, pairs }: { heads: number; pairs: number },
): Float64Array {
  const out = new Float64Array(x.length);
  for (let i = 0; i < x.length / 2; i++) {
    const row = Math.floor(i / (heads * pairs));
    const angle = row * pairs + (i % pairs);
    const [a, b] = [at(x, 2 * i), at(x, 2 * i + 1)];
    out[2 * i] = a * at(cos, angle) - b * at(sin, angle);
    out[2 * i + 1] = a * at(sin, angle) + b * at(cos, angle);
  }
  return out;
}
