import { KinoraError } from '../../lib/contract/errors';
import { probeBudget } from '../../lib/gpu/budget';
import { requestDevice } from '../../lib/gpu/device';
import { gpuLock } from '../../lib/predictions/locks';

/** Bytes of one piece: well below the largest buffer of any device. */
const pieceBytes = 2 ** 28;

/**
 * How much memory the GPU gives, up to `wanted` bytes. Everything is given back at once.
 *
 * @throws KinoraError `BUSY` while a video is being made, `WEBGPU_MISSING`, `ADAPTER_MISSING`
 */
export function measureGpu(wanted: number): Promise<number> {
  // Beside a running video it would measure what that one has left, and endanger it.
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    const device = await requestDevice();
    try {
      return await probeBudget({ canHold: (bytes) => canHold(device, bytes) }, wanted);
    } finally {
      device.destroy();
    }
  });
}

async function canHold(device: GPUDevice, bytes: number): Promise<boolean> {
  const made: GPUBuffer[] = [];
  const lost = device.lost.then(() => true);
  try {
    for (let left = bytes; left > 0; left -= pieceBytes) {
      const size = Math.ceil(Math.min(left, pieceBytes) / 4) * 4;
      device.pushErrorScope('out-of-memory');
      made.push(device.createBuffer({ size, usage: GPUBufferUsage.STORAGE }));
      if (await Promise.race([device.popErrorScope(), lost])) return false;
    }
    return true;
  } finally {
    for (const buffer of made) buffer.destroy();
  }
}
