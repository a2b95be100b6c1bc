export * from './contents';
export * from './endpoints';
export * from './errors';
export * from './other-servers';
export * from './prediction';
export * from './share';
export * from './worker';
