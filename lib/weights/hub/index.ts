export * from './address';
export * from './client';
export * from './local';
export {
  briefPolicy,
  type Clock,
  type RetryPolicy,
  standardPolicy,
  systemClock,
} from './retry';
export * from './source';
