export * from './backend';
export { CountingBackend } from './counting-backend';
export { createBackend } from './create-backend';
export { probeDevice } from './device';
export type { Category } from './ledger';
export { browserRuntime, type Runtime } from './runtime';
export { relativeRms, requireUsable, selfTest } from './self-test';
export { WasmBackend } from './wasm-backend';
export { WebGpuBackend } from './webgpu-backend';
