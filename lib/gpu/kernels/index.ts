export * from './attention';
export * from './choice';
export * from './compute';
export * from './kernel';
export * from './linear';
export * from './own';
