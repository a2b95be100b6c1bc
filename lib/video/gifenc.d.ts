/** The part of gifenc that is used: it has no types of its own. */
declare module 'gifenc' {
  /** Colours of up to 256, each red, green and blue from 0 to 255. */
  export type Palette = readonly (readonly number[])[];
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
