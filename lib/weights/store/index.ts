export { type InstallFilesOptions, installFiles } from './files';
export { findFinisher, finisherFile } from './finisher';
export type { KeptFile } from './folder';
export { modelFolderOf, type StoreFolder, type StoreWriter, writeError } from './folder';
export { type SourceHash, sourceHashService } from './hashes';
export { installComponent, installProgress } from './install';
export type { InstallOptions, InstallProgress } from './installation';
export { keepStart } from './kept-start';
export {
  findLanguageModel,
  type InstalledLanguageModel,
  languageModelFile,
  toolFolder,
} from './language-model';
export { storedBytes } from './layout';
export { modelLock, openModelStore, opfsFolder } from './opfs';
export type { ComponentRecipe, StoredForm, TensorRecipe } from './recipe';
export {
  checkerConfig,
  checkerWeights,
  findSafetyChecker,
  type InstalledChecker,
} from './safety-checker';
export { storeOfModel } from './shared';
export { openStoredComponent, readStoredComponent, type StoredCheckpoint } from './stored';
export { deleteComponent, type VerifyOptions, verifyComponent } from './verify';
