export type { LanguageModel, OpenLanguageModel, TextRequest } from './language-model';
export { type AnswerSpeed, type OpenOptions, openLanguageModel } from './wllama-model';
