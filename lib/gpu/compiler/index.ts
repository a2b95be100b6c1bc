export { KernelExecutor, Program } from './program';
export { Refusal } from './refusal';
export type { CompileOptions, KernelSet } from './scope';
export { compileGraphs, type KernelTarget, kernelSet, openExecutor } from './target';
