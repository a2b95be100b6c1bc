/**
 * Lets the device run out of memory: a texture within all limits, but of 256 GiB, so that a true
 * `GPUOutOfMemoryError` is reported. A buffer of that size would be refused by the limits.
 */
export function exhaustMemory(device: GPUDevice): void {
  device.createTexture({
    size: [8192, 8192, 256],
    format: 'rgba32float',
    usage: GPUTextureUsage.STORAGE_BINDING,
  });
}
