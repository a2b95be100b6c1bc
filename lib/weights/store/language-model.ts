import type { StoreFolder } from './folder';
import { readManifest } from './manifest';
import { opfsFolder } from './opfs';

/** Name of the folder of all tools in the browser's private file system. */
export const toolFolder = 'tools';
/** Name under which the file of a language model is stored. */
export const languageModelFile = 'model.gguf';

/** A language model that is installed. */
export interface InstalledLanguageModel {
  readonly file: File;
  /** `owner/name/path`, or the name of a local file. */
  readonly name: string;
  /** SHA-256 of the file in hex. */
  readonly sha256: string;
}

/**
 * The language model for the prompt optimiser: of several, the one that was installed last; null without
 * one.
 *
 * @param tools the folder of all tools
 */
export async function findLanguageModel(
  tools: StoreFolder = opfsFolder(toolFolder),
): Promise<InstalledLanguageModel | null> {
  const installed: (InstalledLanguageModel & { readonly completedAt: string })[] = [];
  for (const id of await tools.folders()) {
    const folder = tools.folder(id).folder('language_model');
    const manifest = await readManifest(folder);
    const [source] = manifest?.stored.sources ?? [];
    const file = manifest && (await folder.file(languageModelFile));
    if (!manifest || !file || !source?.sha256 || file.size !== source.bytes) continue;
    const name = source.name.replace(/@[^@/]*$/, '');
    const { completedAt } = manifest.stored;
    installed.push({ file, name, sha256: source.sha256, completedAt });
  }
  installed.sort((a, b) => (a.completedAt < b.completedAt ? 1 : -1));
  const [last] = installed;
  return last ? { file: last.file, name: last.name, sha256: last.sha256 } : null;
}
