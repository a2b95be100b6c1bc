export type { OpenLanguageModel, TextRequest } from './language-model';
export {
  type InstalledLanguageModel,
  type OptimizerParts,
  optimiserStep,
  optimizeWithInstalled,
} from './optimize';
export { type OpenOptions, openLanguageModel } from './wllama-model';
