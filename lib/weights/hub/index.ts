export * from './address';
export * from './client';
export { briefPolicy, type Clock, type RetryPolicy, systemClock } from './retry';
export * from './source';
