export { createLimits } from './limits';
