export type Variant = 'base' | 'super';

interface TinyDecoderKeys {
  readonly first: number;
  readonly stages: readonly {
    readonly blocks: readonly number[];
    readonly grow: number;
    readonly convolution: number;
    /** That a frame becomes. */
    readonly frames: number;
  }[];
  readonly last: number;
}

/** Sequential indices of the original model's layers, `decoder.N` in the files, for both variants. */
export const tinyDecoderKeys: Readonly<Record<Variant, TinyDecoderKeys>> = {
  base: {
    first: 1,
    stages: [
      { blocks: [3, 4, 5], grow: 7, convolution: 8, frames: 1 },
      { blocks: [9, 10, 11], grow: 13, convolution: 14, frames: 2 },
      { blocks: [15, 16, 17], grow: 19, convolution: 20, frames: 2 },
    ],
    last: 22,
  },
  super: {
    first: 0,
    stages: [
      { blocks: [1, 2, 3], grow: 7, convolution: 4, frames: 1 },
      { blocks: [8, 9, 10], grow: 14, convolution: 11, frames: 2 },
      { blocks: [15, 16, 17], grow: 21, convolution: 18, frames: 2 },
    ],
    last: 22,
  },
};
