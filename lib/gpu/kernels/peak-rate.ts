/** What a device reaches where nothing but its arithmetic limits it, in operations per second. */
export interface Peak {
  /** f32: two for a multiply-add. */
  readonly multiplyAdd: number;
  /** Of 8-bit integers: eight for a dot product of four; null where the device has none. */
  readonly integerDot: number | null;
}

/**
 * Whether integer dot products are faster than f32 on a device: every browser of WGSL's newer versions has them, but
 * computes them with other instructions where the GPU has none.
 */
export function gainsByIntegers({ multiplyAdd, integerDot }: Peak): boolean {
  return integerDot !== null && integerDot > multiplyAdd;
}

/**
 * The rate at which a kernel would run if nothing but the peak limited it. In the mode `fast` linears and attention
 * multiply integers; everything else is f32.
 *
 * @param fast whether the kernel is one of that mode
 * @returns operations per second; null where the peak is not known
 */
export function peakRate(
  { multiplyAdd, integerDot }: Peak,
  family: 'linear' | 'attention' | 'convolution',
  fast: boolean,
): number | null {
  return fast && family !== 'convolution' ? integerDot : multiplyAdd;
}
