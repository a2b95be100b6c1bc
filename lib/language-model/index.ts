export { type OptimizerParts, optimiserStep, optimizeWithInstalled } from './optimize';
