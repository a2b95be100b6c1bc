export { type GgufHeader, ggufMagic, readGgufHeader } from './header';
export type { GgufNumbers, GgufValue } from './values';
