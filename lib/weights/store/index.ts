export { fetchFile, forgetFetched, readChecked, startingOver } from './fetched-file';
export { installFiles } from './files';
export {
  type KeptFile,
  modelFolderOf,
  type StoreFolder,
  type StoreWriter,
  storeOfModel,
  writeError,
} from './folder';
export { createSourceHash, type SourceHash, sourceHashService } from './hashes';
export { installComponent, installProgress } from './install';
export type { InstallProgress } from './installation';
export { keepStart } from './kept-start';
export { type ComponentRecipe, type StoredForm, storedBytes, type TensorRecipe } from './layout';
export { modelLock, openModelStore, opfsFolder } from './opfs';
export { openStoredComponent, readStoredComponent, type StoredCheckpoint } from './stored';
export {
  checkerConfig,
  checkerWeights,
  findFinisher,
  findLanguageModel,
  findSafetyChecker,
  finisherFile,
  languageModelFile,
  toolFolder,
} from './stored-tools';
export { deleteComponent, verifyComponent } from './verify';
