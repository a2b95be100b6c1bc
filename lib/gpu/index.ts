export * from './backend';
export { gpuCanHold, probeBudget } from './budget';
export {
  compileGraphs,
  type KernelSet,
  type KernelTarget,
  kernelSet,
  openExecutor,
  Program,
  Refusal,
} from './compiler';
export { ImageProgram, KernelImages } from './compiler/image-program';
export { type GraphSizes, placeholder } from './compiler/placeholders';
export { CountingBackend, type DeviceBytes, uniformBytes } from './counting-backend';
export { createBackend, createTestedBackend } from './create';
export { probeDevice } from './device';
export type { Executor, GraphBindings, RowChunk } from './executor';
export type { ImageExecutor } from './images';
export type { Compute } from './kernels';
export type { Category } from './ledger';
export { TensorPool } from './pool';
export { countGraphs } from './runtime/count';
export { RuntimeExecutor } from './runtime/executor';
export { joinsTaps } from './runtime/image-graphs';
export { RuntimeImages } from './runtime/images';
export { browserRuntime, type Runtime } from './runtime/session';
export { relativeRms, requireUsable, selfTest } from './self-test';
export { WasmBackend } from './wasm-backend';
export { WebGpuBackend } from './webgpu-backend';
