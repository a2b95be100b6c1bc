import { KinoraError } from '../../lib/contract';
import { gpuCanHold, probeBudget } from '../../lib/gpu/budget';
import { requestDevice } from '../../lib/gpu/device';
import { gpuLock } from '../../lib/predictions/locks';

/**
 * How much memory the GPU gives, up to `most` bytes. Everything is given back at once.
 *
 * @throws KinoraError `BUSY` while a video is being made, `WEBGPU_MISSING`, `ADAPTER_MISSING`,
 * `ADAPTER_SOFTWARE` as an emulated GPU has no memory of its own, `DEVICE_LOST`
 */
export function measureGpu(most: number): Promise<number> {
  // Beside a running video it would measure what that one has left, and endanger it.
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    const gpu = await requestDevice();
    try {
      if (gpu.software) throw new KinoraError('ADAPTER_SOFTWARE');
      return await probeBudget({ canHold: (bytes) => gpuCanHold(gpu, bytes) }, most);
    } finally {
      gpu.device.destroy();
    }
  });
}
