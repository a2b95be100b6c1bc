export * from './engine';
export * from './errors';
export * from './library';
export * from './manifest';
export * from './prediction';
export * from './profile';
export * from './progress';
export * from './request';
