export type { LanguageModel, OptimizeOptions } from './language-model';
export { detectLanguage } from './lexicon';
export { optimizePrompt } from './optimize';
