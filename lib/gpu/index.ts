import type { Backend } from './backend';
import { browserRuntime, type Runtime } from './runtime/session';
import { WasmBackend } from './wasm-backend';
import { WebGpuBackend } from './webgpu-backend';

export * from './backend';
export { gpuCanHold, probeBudget } from './budget';
export { CountingBackend, type DeviceBytes } from './counting-backend';
export { probeDevice } from './device';
export type { Compute } from './kernels';
export type { Category } from './ledger';
export type { Kernels } from './parts';
export { TensorPool } from './pool';
export { type GraphBindings, type RowChunk, RuntimeExecutor } from './runtime/executor';
export { browserRuntime, type Runtime } from './runtime/session';
export { relativeRms, requireUsable, selfTest } from './self-test';
export { WasmBackend } from './wasm-backend';
export { WebGpuBackend } from './webgpu-backend';

/**
 * Makes a backend.
 *
 * @param runtime ONNX Runtime's module; the browser's build when absent
 * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
 */
export async function createBackend(kind: Backend['kind'], runtime?: Runtime): Promise<Backend> {
  const ort = runtime ?? (await browserRuntime());
  return kind === 'webgpu' ? WebGpuBackend.create(ort) : new WasmBackend(ort);
}
