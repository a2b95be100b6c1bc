import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { blockSize } from './blocks';
import { convertToBlocks, decodeElements, elementType } from './elements';
import { plainDecoders } from './testing/plain-decoders';

const types = Object.keys(plainDecoders);

test.each(types)('%s: the kernel decodes any bytes as plain code does, bit by bit', (dtype) => {
  const { elements, bytes } = elementType(dtype, 'x');
  for (let seed = 0; seed < 20; seed++) {
    // More than a chunk of the kernels, and not a multiple of one.
    const source = randomBytes((4096 / elements + 3) * bytes, seed);
    const expected = new Float32Array((source.length / bytes) * elements);
    plainDecoders[dtype]?.(source, expected);
    expect(bitsOf(decodeElements(source, dtype, 'x'))).toEqual(bitsOf(expected));
  }
});

test('every half and every byte of fp8', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  const halves = new Uint8Array(Uint16Array.from({ length: 65_536 }, (_, i) => i).buffer);
  for (const [dtype, source] of Object.entries({ F8_E4M3: bytes, F8_E5M2: bytes, F16: halves })) {
    const expected = new Float32Array(source.length / elementType(dtype, 'x').bytes);
    plainDecoders[dtype]?.(source, expected);
    expect(bitsOf(decodeElements(source, dtype, 'x'))).toEqual(bitsOf(expected));
  }
});

/** Every bit but those of NaN, which have no meaning. */
function bitsOf(floats: Float32Array): Uint32Array {
  const known = floats.map((value) => (Number.isNaN(value) ? Number.NaN : value));
  return new Uint32Array(known.buffer);
}

/**
 * SHA-256 of values, scales and sums that commit af20ba4 made of {@link sample}: what people have
 * stored was converted by it, and must come out again as it is.
 */
const converted: Readonly<Record<string, readonly [int8: string, int4: string]>> = {
  F32: ['83152d1f1d77fb44', '38f433c46f076796'],
  F16: ['97809dcd72203713', '50d55b882185f578'],
  BF16: ['53b1c232eacc57c7', '40a52b85c5b02fc3'],
  F8_E4M3: ['0cb7c67e9452573f', '3f24f8d6a2bc111e'],
  F8_E5M2: ['30931f0bc5126052', 'ebb506c5e3c7b1ee'],
  Q4_0: ['f76f491ff3e1efae', '24a9670df88cfe23'],
  Q4_1: ['88a3c60c8c73e027', '1068d0179a004ae3'],
  Q5_0: ['54b53415f66749ed', 'b0a16bde4dd152f6'],
  Q5_1: ['9a6a01d267149d7b', '123a36f196b62a2a'],
  Q8_0: ['86266d5d8b2e9ec2', '6fa8545bc83aa12d'],
  Q2_K: ['60fc8815e87aac5a', '5d1231dd7f462f2a'],
  Q3_K: ['2592dd17b2ad09c7', '76350f0ce6b74b9d'],
  Q4_K: ['eaec8b5c71371961', '0f50ddc1bf882dda'],
  Q5_K: ['88558083ea4215a8', 'd77474ee0027b727'],
  Q6_K: ['1a8ce205b809f9c0', 'd202a86cd7a60ce9'],
};

test.each(Object.entries(converted))('%s is converted as it always was', (dtype, digests) => {
  for (const [i, bits] of ([8, 4] as const).entries()) {
    const { elements, bytes } = elementType(dtype, 'x');
    const source = sample(dtype, 80 * 256);
    const count = (source.length / bytes) * elements;
    const values = new Uint8Array((count * bits) / 8);
    const scales = new Float32Array(count / blockSize);
    const sums = convertToBlocks(source, dtype, bits, { values, scales }, 'x', 1.5);
    const hash = createHash('sha256').update(values).update(new Uint8Array(scales.buffer));
    hash.update(Float64Array.of(sums.squaredError, sums.squaredNorm));
    expect(hash.digest('hex').slice(0, 16)).toBe(digests[i]);
  }
});

/** Offsets of the upper bytes of f16 scales in a block, and of the exponents of floats. */
const exponents: Readonly<Record<string, readonly number[]>> = {
  F32: [3],
  Q4_1: [1, 3],
  Q5_1: [1, 3],
  Q2_K: [81, 83],
  Q3_K: [109],
  Q4_K: [1, 3],
  Q5_K: [1, 3],
  Q6_K: [209],
  F8_E4M3: [0],
  F8_E5M2: [0],
};

/** Elements of a type, all of them finite. */
function sample(dtype: string, count: number): Uint8Array {
  const type = elementType(dtype, 'x');
  const clear = exponents[dtype] ?? [1];
  const bytes = randomBytes((count / type.elements) * type.bytes, 1);
  return bytes.map((byte, i) => (clear.includes(i % type.bytes) ? byte & 0xbf : byte));
}

/** A linear congruential generator with the factors of Numerical Recipes. */
function randomBytes(count: number, seed: number): Uint8Array {
  let state = seed;
  return new Uint8Array(count).map(() => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}
