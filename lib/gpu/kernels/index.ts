export * from './attention';
export * from './compute';
export * from './kernel';
