/** The part of gifenc that is used: it has no types of its own. */
declare module 'gifenc' {
  /** Colours of up to 256, each red, green and blue from 0 to 255. */
  export type Palette = readonly (readonly number[])[];
  /** @param rgba pixels, four bytes each */
  export function quantize(rgba: Uint8Array | Uint8ClampedArray, colours: number): Palette;
  /** @returns for each pixel the index of its colour */
  export function applyPalette(rgba: Uint8Array | Uint8ClampedArray, palette: Palette): Uint8Array;
  export function GIFEncoder(): {
    writeFrame(
      indices: Uint8Array,
      width: number,
      height: number,
      /** `delay` in milliseconds, of which whole hundredths of a second are kept. */
      options: { readonly palette: Palette; readonly delay: number },
    ): void;
    finish(): void;
    bytes(): Uint8Array<ArrayBuffer>;
  };
}
