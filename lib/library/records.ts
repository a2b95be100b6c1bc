import { z } from 'zod';
import {
  type ModelManifest,
  parseManifest,
  precisions,
  type ToolManifest,
  toolSchema,
} from '../contract';
import { readRecord, type StoreFolder } from '../weights/store/folder';

const choicesFile = 'library.json';

const schema = z.object({
  /** Base address of the hub; null for the one that is set by default. */
  hub: z.string().nullable().default(null),
  /** Token of an account, and the base address of the hub that it is for. */
  hubToken: z.object({ hub: z.string(), token: z.string() }).nullable().default(null),
  /** Precision that was chosen for each model. */
  precision: z.record(z.string(), z.enum(precisions)).default({}),
  /** Adapters that were chosen for each model, `owner/name/path`. */
  adapter: z.record(z.string(), z.array(z.string())).default({}),
  /** Parts whose download was begun and neither ended nor cancelled, by model; with their sizes, where known. */
  wanted: z.record(z.string(), z.record(z.string(), z.number().nullable())).default({}),
});

/** The choices of the user. */
export type Choices = z.output<typeof schema>;

/** Web Lock for reading and changing the file, so that no other tab writes in between. */
export const choicesLock = 'kinora:library';

/** Reads the choices; what cannot be understood counts as never made. */
export async function readChoices(folder: StoreFolder): Promise<Choices> {
  return (await readRecord(folder, choicesFile, schema.parse)) ?? schema.parse({});
}

/** Replaces what {@link readChoices} reads. */
export async function writeChoices(folder: StoreFolder, choices: Choices): Promise<void> {
  await folder.writeText(choicesFile, JSON.stringify(choices));
}

/** Manifest of an added model, in the model's own folder. */
const manifestFile = 'model.json';

/** The models that the user has added; what cannot be read is no model. */
export async function addedModels(models: StoreFolder): Promise<readonly ModelManifest[]> {
  return addedTo(models, parseManifest);
}

/** The language models that the user has added. */
export async function addedTools(tools: StoreFolder): Promise<readonly ToolManifest[]> {
  return addedTo(tools, toolSchema.parse);
}

async function addedTo<M extends ToolManifest>(
  root: StoreFolder,
  parse: (json: unknown) => M,
): Promise<readonly M[]> {
  const manifests: M[] = [];
  for (const id of await root.folders()) {
    const manifest = await readRecord(root.folder(id), manifestFile, parse);
    if (manifest?.id === id) manifests.push(manifest);
  }
  return manifests;
}

/** Lists a model or a tool: {@link addedModels} or {@link addedTools} find its manifest in its folder. */
export async function writeAddedModel(folder: StoreFolder, manifest: ToolManifest): Promise<void> {
  await folder.writeText(manifestFile, JSON.stringify(manifest));
}
