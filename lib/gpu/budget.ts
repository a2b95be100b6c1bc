import { KinoraError } from '../contract';
import type { Backend } from './backend';
import type { Gpu } from './device';

/** Precision of the result, as a fraction of what is wanted. */
const precision = 1 / 32;

/** A probe allocates buffers of this size: about the largest tensors of the 5B. */
const pieceBytes = 2 ** 29;

/**
 * Bytes that must stay free beside a plan: for pipelines, staging buffers and other programs. A GPU that
 * is full swaps memory with the computer, or fails in places that are not counted here.
 */
function reserveOf(bytes: number): number {
  return Math.max(2 ** 28, Math.ceil(bytes / 20));
}

/**
 * Finds out how much memory the device has by allocating it: first all that is wanted, and only if that
 * fails less. Everything is freed again. A reserve of 5 %, at least 256 MiB, is allocated beside it.
 *
 * @param full bytes of the plan in which everything fits
 * @returns bytes that the device has beside the reserve; 0 where it has none
 */
export async function probeBudget(
  backend: Pick<Backend, 'canHold'>,
  full: number,
): Promise<number> {
  const fits = (bytes: number) => backend.canHold(bytes + reserveOf(bytes));
  if (await fits(full)) return full;
  let [granted, refused] = [0, full];
  while (refused - granted > full * precision) {
    const middle = Math.floor((granted + refused) / 2);
    if (await fits(middle)) granted = middle;
    else refused = middle;
  }
  return granted;
}

/**
 * Bytes of main memory for a run on the CPU or on a GPU that it emulates: half of what the browser tells, which many
 * cap at 8 GiB, and where it tells nothing (Firefox, Safari) half of 4 GiB.
 */
export function mainMemoryBudget(): number {
  const browser = globalThis.navigator as { readonly deviceMemory?: number } | undefined;
  return (browser?.deviceMemory ?? 4) * 2 ** 29;
}

/**
 * Whether so many more bytes can be allocated on a device. They are freed before this resolves.
 *
 * A software device is not tested: its memory is the computer's, and an allocation of gigabytes crashes it
 * instead of failing.
 *
 * @throws KinoraError `DEVICE_LOST`
 */
export async function gpuCanHold({ device, software }: Gpu, bytes: number): Promise<boolean> {
  if (software) return true;
  const lost = device.lost.then((info) => {
    throw new KinoraError('DEVICE_LOST', undefined, { cause: info.message });
  });
  const buffers: GPUBuffer[] = [];
  try {
    const largest = Math.min(pieceBytes, device.limits.maxBufferSize);
    for (let left = bytes; left > 0; left -= largest) {
      const size = Math.ceil(Math.min(left, largest) / 16) * 16;
      device.pushErrorScope('out-of-memory');
      buffers.push(device.createBuffer({ size, usage: GPUBufferUsage.STORAGE }));
      if (await Promise.race([device.popErrorScope(), lost])) return false;
    }
    return true;
  } catch (cause) {
    // Popping an error scope fails only on a lost device.
    throw cause instanceof KinoraError
      ? cause
      : new KinoraError('DEVICE_LOST', undefined, { cause });
  } finally {
    for (const buffer of buffers) buffer.destroy();
    // Memory is freed with the end of a submit; the next probe must find it free.
    device.queue.submit([]);
    await Promise.race([device.queue.onSubmittedWorkDone(), device.lost]);
  }
}
