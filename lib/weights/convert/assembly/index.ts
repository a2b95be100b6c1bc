/** The inner loops of the conversion, in AssemblyScript: `npm run prepare:assets` compiles them. */
export { copy4, copy8 } from './copy';
export { decodeBF16, decodeE4M3, decodeE5M2, decodeF16, decodeU8, multiply } from './floats';
export {
  decodeQ2_K,
  decodeQ3_K,
  decodeQ4_0,
  decodeQ4_1,
  decodeQ4_K,
  decodeQ5_0,
  decodeQ5_1,
  decodeQ5_K,
  decodeQ6_K,
  decodeQ8_0,
} from './ggml';
export { chunkElements, floats, scales, source, sums, values } from './memory';
export { quantise4 } from './quantise4';
export { quantise8 } from './quantise8';
