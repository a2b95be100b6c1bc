export * from './compute';
export * from './kernel';
