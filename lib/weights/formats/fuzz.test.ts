/** @module-tag full */
/** Damaged and hostile headers: whatever the bytes, a KinoraError or a table that fits the file. */
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KinoraError } from '../../contract';
import {
  compactFile,
  goldens,
  safetensorsBytes,
  safetensorsFrom,
  f32 as zeros,
} from '../testing/files';
import { countedFile, ggufBytes, list, text, u32, virtualFile } from '../testing/gguf';
import { readGgufHeader } from './gguf';
import { readSafetensorsHeader, type TensorEntry } from './safetensors';
import { blobFile, type WeightFile } from './source';
import { openTensorFile } from './tensor-file';

type Reader = (file: WeightFile) => Promise<{
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly headerBytes: number;
}>;

/** Header bytes that a reader may fetch in vain: it reads ahead, but little. */
const surplus = 2 ** 20;
const hugeFile = 2 ** 43;

/** Reads a header and checks what must hold of any bytes; gives what came of it. */
async function survive(read: Reader, file: WeightFile): Promise<'read' | 'refused'> {
  const counted = countedFile(file);
  let header: Awaited<ReturnType<Reader>>;
  try {
    header = await read(counted);
  } catch (error) {
    expect(error).toBeInstanceOf(KinoraError);
    const { code, message } = error as KinoraError;
    expect(['MODEL_FILE_INVALID', 'MODEL_FILE_TRUNCATED'], String(error)).toContain(code);
    expect(message.length).toBeLessThan(3000);
    return 'refused';
  } finally {
    // Each byte once (the beginning perhaps twice), and never more than a header may have.
    expect(counted.bytesRead).toBeLessThanOrEqual(Math.min(file.size + 64, 2 ** 27));
    expect(counted.reads).toBeLessThan(64);
  }
  expect(counted.bytesRead).toBeLessThanOrEqual(header.headerBytes + surplus);
  let position = header.headerBytes;
  for (const { start, end, shape } of [...header.tensors.values()].sort(
    (a, b) => a.start - b.start || a.end - b.end,
  )) {
    expect(start).toBeGreaterThanOrEqual(position);
    expect(end).toBeLessThanOrEqual(file.size);
    expect(shape.every((n) => Number.isSafeInteger(n) && n >= 0)).toBe(true);
    position = end;
  }
  return 'read';
}

const fileOf = (bytes: Uint8Array) =>
  blobFile('fuzz', new Blob([bytes as Uint8Array<ArrayBuffer>]));

const gguf = await readFile(`${goldens}formats/text-encoder-Q8_0.gguf`);
const safetensors = safetensorsBytes(
  { a: zeros([3, 4]), 'b.weight': zeros([2, 2, 2]), c: zeros([1]) },
  { note: 'x' },
);
const torch = await readFile(compactFile);
const withValues = ggufBytes({
  metadata: {
    'general.architecture': text('wan'),
    'general.alignment': u32(64),
    tokens: list(8, ['a', 'bc', '']),
    nested: { type: 9, items: 9, value: [list(5, [1, 2]), list(8, ['x'])] },
    'comfy.gguf.orig_shape.a': list(5, [2, 2, 2]),
  },
  tensors: [
    { name: 'a', shape: [8], type: 0, bytes: 32 },
    { name: 'b', shape: [4, 256], type: 12, bytes: 576 },
  ],
  alignment: 64,
});

describe.each<[string, Reader, Uint8Array, number]>([
  ['GGUF, golden', readGgufHeader, gguf, 1440],
  ['GGUF, every kind of value', readGgufHeader, withValues, withValues.length],
  ['safetensors', readSafetensorsHeader, safetensors, safetensors.length],
  ['by content, PyTorch', openTensorFile, torch, torch.length],
])('%s', (_, read, whole, headerBytes) => {
  test('whole, it is read', async () => {
    expect(await survive(read, fileOf(whole))).toBe('read');
  });

  test('truncated anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: whole.length - 1 }), async (length) => {
        expect(await survive(read, fileOf(whole.slice(0, length)))).toBe('refused');
      }),
      { numRuns: 100 },
    );
  });

  test('with flipped bits', async () => {
    const flip = fc.tuple(fc.nat(headerBytes - 1), fc.integer({ min: 1, max: 255 }));
    await fc.assert(
      fc.asyncProperty(fc.array(flip, { minLength: 1, maxLength: 8 }), async (flips) => {
        const bytes = Uint8Array.from(whole);
        for (const [at, mask] of flips) bytes[at] = (bytes[at] ?? 0) ^ mask;
        await survive(read, fileOf(bytes));
      }),
      { numRuns: 200 },
    );
  });

  test('with huge, negative and odd numbers anywhere, in a file of any size', async () => {
    const number = fc.oneof(
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.constantFrom(0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n),
      fc.bigInt({ min: 0n, max: 100_000n }),
    );
    const writes = fc.array(fc.tuple(fc.nat(headerBytes - 9), number), {
      minLength: 1,
      maxLength: 4,
    });
    await fc.assert(
      fc.asyncProperty(writes, fc.boolean(), async (places, huge) => {
        const bytes = Uint8Array.from(whole);
        const view = new DataView(bytes.buffer);
        for (const [at, value] of places) view.setBigUint64(at, value, true);
        // A hostile header in front of 8 TiB: nothing but its own bounds holds the reader back.
        await survive(read, huge ? virtualFile('fuzz', bytes, hugeFile) : fileOf(bytes));
      }),
      { numRuns: 200 },
    );
  });

  test('random bytes, bare and behind the right beginning', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 4096 }),
        fc.constantFrom(0, 4, 8, 16, 24),
        async (random, keep) => {
          const bytes = new Uint8Array(keep + random.length);
          bytes.set(whole.subarray(0, keep));
          bytes.set(random, keep);
          await survive(read, fileOf(bytes));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('headers of the right form and any content', () => {
  const size = fc.oneof(fc.nat(300), fc.maxSafeNat(), fc.constantFrom(-1, 0.5, 2 ** 53, 1e300));
  const shape = fc.array(size, { maxLength: 9 });

  test('safetensors: overlaps, gaps, negative and overflowing sizes', async () => {
    const entry = fc.record({
      dtype: fc.constantFrom('F32', 'F16', 'F8_E4M3', 'F4', 'toString', ''),
      shape,
      data_offsets: fc.oneof(fc.tuple(size, size), fc.array(size, { maxLength: 3 })),
    });
    const header = fc.dictionary(
      fc.oneof(fc.string({ maxLength: 8 }), fc.constantFrom('__metadata__', '__proto__')),
      fc.oneof(entry, fc.jsonValue({ maxDepth: 2 })),
      { maxKeys: 6 },
    );
    await fc.assert(
      fc.asyncProperty(header, fc.nat(600), async (json, dataBytes) => {
        const bytes = safetensorsFrom(json, [new Uint8Array(dataBytes)]);
        await survive(readSafetensorsHeader, fileOf(bytes));
      }),
      { numRuns: 200 },
    );
  });

  test('safetensors: entries that are right one by one share no byte', async () => {
    const range = fc.tuple(fc.nat(3), fc.nat(3)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
    await fc.assert(
      fc.asyncProperty(fc.array(range, { maxLength: 4 }), async (ranges) => {
        const entries = ranges.map(([start = 0, end = 0], i) => [
          `t${i}`,
          { dtype: 'F32', shape: [end - start], data_offsets: [4 * start, 4 * end] },
        ]);
        const reach = Math.max(0, ...ranges.map(([, end = 0]) => 4 * end));
        const bytes = safetensorsFrom(Object.fromEntries(entries), [new Uint8Array(reach)]);
        await survive(readSafetensorsHeader, fileOf(bytes));
      }),
      { numRuns: 200 },
    );
  });

  test('safetensors: brackets without end, and a header that says it is 90 MB', async () => {
    const deep = safetensorsFrom('['.repeat(1_000_000), []);
    expect(await survive(readSafetensorsHeader, fileOf(deep))).toBe('refused');
    const head = new Uint8Array(9);
    new DataView(head.buffer).setBigUint64(0, 90_000_000n, true);
    const file = countedFile(virtualFile('x', head, hugeFile));
    expect(await survive(readSafetensorsHeader, file)).toBe('refused');
    expect(file.bytesRead).toBeLessThan(100);
  });

  test('GGUF: overlaps, wrong steps, negative and overflowing sizes', async () => {
    const big = fc.oneof(fc.nat(300), fc.constantFrom(2 ** 31, 2 ** 53, 2 ** 60));
    const tensor = fc.record({
      name: fc.string({ maxLength: 8 }),
      shape: fc.array(big, { maxLength: 9 }),
      type: fc.nat(45),
      bytes: fc.nat(512),
      offset: fc.oneof(
        fc.bigInt({ min: 0n, max: 64n }).map((n) => n * 32n),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(tensor, { maxLength: 5 }), async (tensors) => {
        await survive(readGgufHeader, fileOf(ggufBytes({ tensors })));
      }),
      { numRuns: 200 },
    );
  });
});
