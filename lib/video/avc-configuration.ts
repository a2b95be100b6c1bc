/** Where the first parameter set of an AVCDecoderConfigurationRecord begins, after their number. */
const firstSet = 6;
/** Bits of the record that are reserved and set: before the size of lengths, and before the number of SPS. */
const reserved = [
  [4, 0b1111_1100],
  [5, 0b1110_0000],
] as const;

/**
 * Mends the decoder configuration of Firefox 153, in which the header byte of each parameter set stands twice
 * (SPS `67 67 64 …`, PPS `68 68 …`) and the reserved bits are 0: ffmpeg reads such a file with errors.
 *
 * @param record AVCDecoderConfigurationRecord (ISO/IEC 14496-15, 5.3.3.1)
 * @returns any other record as it is
 */
export function mendedConfiguration(record: Uint8Array): Uint8Array {
  const profile = record[1];
  // The header of an SPS is followed by the profile.
  const sps = record.subarray(firstSet + 2);
  if (sps[0] !== sps[1] || sps[1] === profile || sps[2] !== profile) return record;
  const mended = [...record.subarray(0, firstSet)];
  for (const [at, bits] of reserved) mended[at] = (record[at] ?? 0) | bits;
  let at = firstSet;
  const copySets = (count: number) => {
    for (let i = 0; i < count; i++) {
      const size = ((record[at] ?? 0) << 8) | (record[at + 1] ?? 0);
      const doubled = record[at + 2] === record[at + 3] ? 1 : 0;
      mended.push((size - doubled) >> 8, (size - doubled) & 0xff);
      mended.push(...record.subarray(at + 2 + doubled, at + 2 + size));
      at += 2 + size;
    }
  };
  copySets((record[5] ?? 0) & 0b1_1111);
  const pictureSets = record[at++] ?? 0;
  mended.push(pictureSets);
  copySets(pictureSets);
  return Uint8Array.from([...mended, ...record.subarray(at)]);
}
