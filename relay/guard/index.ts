export { GuardError } from './errors';
export * from './guard';
