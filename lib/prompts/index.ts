export type { LanguageModel, OptimizeOptions } from './language-model';
