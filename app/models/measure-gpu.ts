import { KinoraError } from '../../lib/contract/errors';
import { gpuCanHold, probeBudget } from '../../lib/gpu/budget';
import { requestDevice } from '../../lib/gpu/device';
import { gpuLock } from '../../lib/predictions/locks';

/**
 * How much memory the GPU gives, up to `wanted` bytes; a software GPU has no limit of its own.
 * Everything is given back at once.
 *
 * @throws KinoraError `BUSY` while a video is being made, `WEBGPU_MISSING`, `ADAPTER_MISSING`,
 * `DEVICE_LOST`
 */
export function measureGpu(wanted: number): Promise<number> {
  // Beside a running video it would measure what that one has left, and endanger it.
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    const gpu = await requestDevice();
    try {
      return await probeBudget({ canHold: (bytes) => gpuCanHold(gpu, bytes) }, wanted);
    } finally {
      gpu.device.destroy();
    }
  });
}
