export * from './log';
export * from './metrics';
