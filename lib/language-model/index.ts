export { type OptimizerDependencies, optimiserStep, optimizeWithInstalled } from './optimize';
