export { type GgufHeader, ggufMagic, readGgufHeader } from './header';
export { type GgmlType, ggmlType } from './types';
export type { GgufNumbers, GgufValue } from './values';
