export { type GgmlType, type GgufHeader, ggmlType, ggufMagic, readGgufHeader } from './header';
export type { GgufNumbers, GgufValue } from './values';
