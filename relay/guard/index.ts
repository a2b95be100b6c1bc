export * from './addresses';
export * from './guard';
export type { Lookup } from './lookup';
