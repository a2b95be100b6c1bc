export { type Graph, GraphBuilder, type Port } from './graph';
export * from './operators';
export { type Dim, type ElementArrays, type ElementType, type FloatType, Value } from './value';
