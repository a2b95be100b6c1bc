export { type InstallFilesOptions, installFiles } from './files';
export type { KeptFile } from './folder';
export { modelFolderOf, type StoreFolder, type StoreWriter, writeError } from './folder';
export { type SourceHash, sourceHashService } from './hashes';
export {
  type InstallOptions,
  type InstallProgress,
  installComponent,
  installProgress,
} from './install';
export { keepStart } from './kept-start';
export { storedBytes } from './layout';
export { modelLock, openModelStore, opfsFolder } from './opfs';
export type { ComponentRecipe, StoredForm, TensorRecipe } from './recipe';
export { openStoredComponent, readStoredComponent, type StoredCheckpoint } from './stored';
export { deleteComponent, type VerifyOptions, verifyComponent } from './verify';
