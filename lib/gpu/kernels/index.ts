export * from './attention';
export { hasAttention } from './attention-text';
export * from './choice';
export * from './compute';
export * from './kernel';
export * from './linear';
export * from './own';
export * from './pointwise';
export { storageBytes } from './text';
