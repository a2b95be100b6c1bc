import { at, type ColourChange } from '../contract';
import type { Frame } from './latents';

/** Nothing is changed. */
const sameColours: ColourChange = { gain: [1, 1, 1], offset: [0, 0, 0] };

/** The most that is changed: a tenth of the contrast, and 8 of 255. */
const most = { gain: 0.1, offset: 8 };
/** The share of the model's change that is taken back: a part of it may be intended. */
const driftShare = 0.5;
const channels = [0, 1, 2] as const;

/** A value of −1 … 1 as one of 0 … 255. */
function level(value: number): number {
  return (value + 1) * 127.5;
}

/** Means, variances and covariances of the channels of pictures, or of pairs of pictures; values 0 … 255. */
export class ColourStatistics {
  #count = 0;
  readonly #sums = channels.map(() => ({ x: 0, y: 0, xx: 0, xy: 0 }));

  /** @param pair of the same size; the picture itself when absent */
  add({ data: xs }: Frame, { data: ys }: Frame = { data: xs } as Frame): void {
    const plane = xs.length / channels.length;
    this.#count += plane;
    for (const [c, sums] of this.#sums.entries()) {
      for (let i = c * plane; i < (c + 1) * plane; i++) {
        const [x, y] = [level(xs[i] as number), level(ys[i] as number)];
        sums.x += x;
        sums.y += y;
        sums.xx += x * x;
        sums.xy += x * y;
      }
    }
  }

  /** Per channel: means of both, the variance of the first, and the covariance. */
  read() {
    const n = this.#count;
    return this.#sums.map(({ x, y, xx, xy }) => {
      const [meanX, meanY] = [x / n, y / n];
      return { meanX, meanY, variance: xx / n - meanX ** 2, covariance: xy / n - meanX * meanY };
    });
  }
}

/** The change that leads from one picture to another of the same content, by least squares, within the limits. */
export function fittedColours(from: Frame, to: Frame): ColourChange {
  const pair = new ColourStatistics();
  pair.add(from, to);
  return changeOf(
    pair.read().map(({ meanX, meanY, variance, covariance }) => {
      return { from: meanX, to: meanY, gain: variance > 0 ? covariance / variance : 1 };
    }),
  );
}

/** The change that gives pictures the means and deviations of others of other content, within the limits. */
function matchedColours(from: ColourStatistics, to: ColourStatistics): ColourChange {
  const targets = to.read();
  return changeOf(
    from.read().map(({ meanX, variance }, c) => {
      const target = at(targets, c);
      const gain = variance > 0 ? Math.sqrt(target.variance / variance) : 1;
      return { from: meanX, to: target.meanX, gain };
    }),
  );
}

function changeOf(means: readonly { from: number; to: number; gain: number }[]): ColourChange {
  const gain = means.map((of) => within(of.gain, 1 - most.gain, 1 + most.gain));
  const offset = means.map(({ from, to }, c) => {
    return within(to - at(gain, c) * from, -most.offset, most.offset);
  });
  return { gain, offset };
}

function within(value: number, least: number, largest: number): number {
  return Math.min(largest, Math.max(least, value));
}

/** A frame with a share of a change of its colours. */
export function recoloured(frame: Frame, { gain, offset }: ColourChange, share = 1): Frame {
  const plane = frame.data.length / channels.length;
  const data = frame.data.slice();
  for (const c of channels) {
    // v of −1 … 1 is 127.5·(v + 1) of 0 … 255.
    const factor = 1 + share * (at(gain, c) - 1);
    const term = share * (at(gain, c) - 1 + at(offset, c) / 127.5);
    for (let i = c * plane; i < (c + 1) * plane; i++) {
      data[i] = within(factor * (data[i] as number) + term, -1, 1);
    }
  }
  return { ...frame, data };
}

/**
 * Keeps the colours of a clip that goes on from another one's last picture. Two causes change them: the picture was
 * encoded and decoded once more, which the frame that both clips have shows; and the model goes its own way, of which
 * half is taken back, rising over the first second and then falling, because the content may be intended to change.
 */
export class ColourKeeper {
  #encoding = sameColours;
  #drift = sameColours;
  readonly #seen = new ColourStatistics();

  constructor(
    readonly options: {
      /** The last frame of the clip before, as it was shown. */
      readonly last: Frame;
      /** Of the last second of the clip before; null where it is not known. */
      readonly before: ColourStatistics | null;
      /** Of this clip. */
      readonly frames: number;
      /** Frames of a second. */
      readonly second: number;
    },
  ) {}

  /** Call it with each frame in order; the first one shows the last frame of the clip before. */
  next(frame: Frame, index: number): Frame {
    const { last, before, frames, second } = this.options;
    if (index === 0) this.#encoding = fittedColours(frame, last);
    const even = recoloured(frame, this.#encoding);
    if (!before || index === 0) return even;
    if (index <= second) {
      this.#seen.add(even);
      this.#drift = matchedColours(this.#seen, before);
    }
    const share = driftShare * Math.min(1, index / second) * (1 - index / frames);
    return recoloured(even, this.#drift, share);
  }

  /** The changes that were found: of the encoding, and of the model, of which at most a half is applied. */
  get found(): { readonly encoding: ColourChange; readonly drift: ColourChange } {
    return { encoding: this.#encoding, drift: this.#drift };
  }
}
