import { KinoraError } from '../contract';
import type { Backend } from './backend';
import type { Gpu } from './device';

/** A probe is as precise as this share of what is wanted. */
const precision = 1 / 32;

/** A device is probed in pieces of this size: about its largest tensors in the real model. */
const pieceBytes = 2 ** 29;

/**
 * Bytes that must be free beside a plan: for pipelines, staging, and whoever draws the screen. A GPU
 * that is filled to its last byte moves memory to and fro, or fails where nobody counts.
 */
function reserveOf(bytes: number): number {
  return Math.max(2 ** 28, Math.ceil(bytes / 20));
}

/**
 * Finds out how much memory the device gives, by asking for it: first for all that is wanted, and only
 * where that fails for less. Nothing of it is kept. Beyond what is wanted, only a reserve is asked for:
 * 5 % of it, 256 MiB at least.
 *
 * @param wanted bytes of the plan in which everything fits
 * @returns bytes that the device gave beside the reserve; 0 where it gives none
 */
export async function probeBudget(
  backend: Pick<Backend, 'canHold'>,
  wanted: number,
): Promise<number> {
  const fits = (bytes: number) => backend.canHold(bytes + reserveOf(bytes));
  if (await fits(wanted)) return wanted;
  let [given, refused] = [0, wanted];
  while (refused - given > wanted * precision) {
    const middle = Math.floor((given + refused) / 2);
    if (await fits(middle)) given = middle;
    else refused = middle;
  }
  return given;
}

/**
 * Whether a device gives so many bytes more. They are given back before this resolves.
 *
 * A software device is never asked: its memory is the computer's, it does not say no, and being asked
 * for gigabytes ends it.
 *
 * @throws KinoraError `DEVICE_LOST`
 */
export async function gpuCanHold({ device, software }: Gpu, bytes: number): Promise<boolean> {
  if (software) return true;
  const lost = device.lost.then((info) => {
    throw new KinoraError('DEVICE_LOST', undefined, { cause: info.message });
  });
  const made: GPUBuffer[] = [];
  try {
    const largest = Math.min(pieceBytes, device.limits.maxBufferSize);
    for (let left = bytes; left > 0; left -= largest) {
      const size = Math.ceil(Math.min(left, largest) / 16) * 16;
      device.pushErrorScope('out-of-memory');
      made.push(device.createBuffer({ size, usage: GPUBufferUsage.STORAGE }));
      if (await Promise.race([device.popErrorScope(), lost])) return false;
    }
    return true;
  } catch (cause) {
    // A scope that was pushed cannot be taken back only where the device is gone.
    throw cause instanceof KinoraError
      ? cause
      : new KinoraError('DEVICE_LOST', undefined, { cause });
  } finally {
    for (const buffer of made) buffer.destroy();
    // Memory goes back with the end of a submit; the next question must find it free.
    device.queue.submit([]);
    await Promise.race([device.queue.onSubmittedWorkDone(), device.lost]);
  }
}
