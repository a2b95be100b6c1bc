export { type SourceHash, sourceHashService } from './digest';
export { type InstallFilesOptions, installFiles } from './files';
export { modelFolderOf, type StoreFolder, type StoreWriter, writeError } from './folder';
export {
  type InstallOptions,
  type InstallProgress,
  installComponent,
  installProgress,
} from './install';
export type { KeptFile } from './kept-file';
export { keepStart } from './kept-start';
export { storedBytes } from './layout';
export { modelLock } from './lock';
export { openModelStore, opfsFolder } from './opfs';
export type { ComponentRecipe, StoredForm, TensorRecipe } from './recipe';
export { openStoredComponent, readStoredComponent, type StoredCheckpoint } from './stored';
export { deleteComponent, type VerifyOptions, verifyComponent } from './verify';
