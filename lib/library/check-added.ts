import type { ModelManifest, SourceFile } from '../contract';
import { isConverted, type ModelInstallations, type ModelPlan } from '../pipeline/installation';
import { familyOf } from '../pipeline/open';
import { checkSamplers } from '../pipeline/schedulers';
import type { ModelFolder } from '../weights/formats/source';
import { type HubClient, hubByteSource } from '../weights/hub';
import { keepStart, type StoreFolder } from '../weights/store';
import type { ListedModel } from './environment';
import { type LocalFiles, localSource } from './local-files';
import { filesOf, folderOfFiles, hubFolder, openHeaders } from './sources';

/** Dependencies of the check of an added model. */
export interface CheckContext {
  readonly client: HubClient;
  readonly families: ModelInstallations;
  /** The model whose parts serve where a source has only some; its family is the first that is tried. */
  readonly base: ListedModel;
  /** The folder of all models. */
  readonly models: StoreFolder;
}

/**
 * Compares the headers of a model's own files with its configuration, so that a wrong file is refused when it is
 * added. The headers that are read from the hub are kept: the download does not fetch them again.
 *
 * @returns what its configuration says; null when it has none yet
 * @throws KinoraError as `ModelPlan.check` and {@link checkSamplers}, and what the hub answers
 */
export async function checkAdded(
  manifest: ModelManifest,
  local: LocalFiles,
  context: CheckContext,
): Promise<ModelPlan | null> {
  checkSamplers(manifest);
  const configuration = configurationFor(manifest, local, context);
  if (!configuration) return null;
  const plan = await familyOf(context.families, manifest).installation.plan(configuration);
  const { sources, components } = manifest;
  for (const { component, precision = manifest.precision, files, optional } of sources) {
    if (!isConverted(component) || local.has(component) || optional) continue;
    if (isOfBase(files, context.base.manifest)) continue;
    const folder = context.models.folder(manifest.id).folder(component);
    const keeps = !components.some(({ id, keptWith }) => id === component && keptWith);
    const byteSources = await Promise.all(
      files.map(async (file, i) => {
        const source = hubByteSource(context.client, await context.client.file(file));
        return keeps && precision === manifest.precision ? keepStart(folder, i, source) : source;
      }),
    );
    const { headers } = await openHeaders(byteSources);
    plan.check(component, headers, precision);
  }
  for (const [component, files] of local) {
    if (!isConverted(component)) continue;
    const { headers } = await openHeaders(files.map(localSource));
    plan.check(component, headers, manifest.precision);
  }
  return plan;
}

/** The configuration of a model that is being added: local, the base's own, or the hub's. */
function configurationFor(
  manifest: ModelManifest,
  local: LocalFiles,
  { client, base }: CheckContext,
): ModelFolder | null {
  const picked = local.get('configuration');
  if (picked) return folderOfFiles(picked, localSource);
  const files = filesOf(manifest, 'configuration', manifest.precision);
  if (files.length === 0) return null;
  const folder = hubFolder(files, client);
  if (!base.base || !isOfBase(files, base.manifest)) return folder;
  // Its large files, such as the tokenizer, are on the hub only.
  return { ...base.base, exists: folder.exists };
}

/** Whether files are the base model's own ones: those are known to fit. */
function isOfBase(files: readonly SourceFile[], base: ModelManifest): boolean {
  const text = JSON.stringify(files);
  return base.sources.some((source) => JSON.stringify(source.files) === text);
}
