export type { LanguageModel, OptimizeOptions } from './language-model';
export { optimizePrompt } from './optimize';
