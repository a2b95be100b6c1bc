/** Elements that share one scale; the only block size that ONNX Runtime runs fast at this length. */
export const blockSize = 32;

/**
 * A matrix [N, K] in symmetric blocks of 32 along its rows, laid out as ONNX Runtime's `MatMulNBits`
 * takes it: 8 bits as `byte − 128`, 4 bits as `nibble − 8` with the even element in the low nibble.
 */
export interface Blocks {
  readonly bits: 8 | 4;
  /** [N, K/32, 32·bits/8] bytes. */
  readonly values: Uint8Array<ArrayBuffer>;
  /** [N, K/32]. */
  readonly scales: Float32Array<ArrayBuffer>;
}

/** A tensor's content as the device takes it: plain floats, or a matrix in blocks. */
export type TensorData = Float32Array | Blocks;
