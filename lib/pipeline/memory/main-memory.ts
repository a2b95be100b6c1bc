import { KinoraError } from '../../contract';

/** The CPU's memory does not hold a clip in tiles: a smaller plan of the device's would not help. */
export class MainMemoryExhausted extends KinoraError {
  constructor(bytes: number, cause: RangeError) {
    const mebibytes = Math.ceil(bytes / 2 ** 20).toLocaleString('en');
    super(
      'OUT_OF_MEMORY',
      `Decoding in tiles takes ${mebibytes} MiB of main memory, and the browser gave less.`,
      {
        cause,
        remedy:
          'Close other tabs and programs, make a shorter video, or allow more GPU memory so that whole frames are decoded.',
      },
    );
  }
}
