import {
  type AdapterChoices,
  type ComponentId,
  type DownloadPlan,
  KinoraError,
  type Precision,
  type StorageReport,
} from '../contract';
import { isConverted } from '../pipeline/installation';
import type { ByteSource } from '../weights/formats/source';
import type { HubClient } from '../weights/hub';
import { installProgress } from '../weights/store';
import { type LocalFiles, localSource } from './local-files';
import type { ManagedModel } from './managed-model';
import { configurationOf, filesOf, isWithheld } from './sources';

/** Inputs of the plan of a download. */
export interface PlanContext {
  readonly client: HubClient;
  readonly storage: StorageReport;
  /** Files that serve instead of the hub. */
  readonly local?: LocalFiles;
  /** Those chosen before when absent. */
  readonly adapters?: AdapterChoices | undefined;
  /** The components to count. */
  readonly only: readonly ComponentId[];
  readonly signal?: AbortSignal;
}

/**
 * What a download will take, before it starts. The space of replaced files is counted as free.
 *
 * @throws KinoraError what the hub answers, `MODEL_CONFIG_INVALID`, and `MODEL_BUSY` for a part that would be replaced
 * for another model too
 */
export async function planDownload(
  model: ManagedModel,
  precision: Precision,
  context: PlanContext,
): Promise<DownloadPlan> {
  const { client, storage, adapters = model.adapters, local, only } = context;
  const installation = model.installationOf?.();
  const plan = await installation?.plan(await configurationOf(model, precision, client));
  const parts = await Promise.all(
    only.map(async (component) => {
      const picked = local?.get(component);
      const replaced = model.stored.find((one) => one.component === component);
      if (replaced && model.has(component, precision, adapters) && !picked) {
        const files = replaced.sources.map(({ name, bytes }) => ({ name: path(name), bytes }));
        const part = { component, files, bytesLeft: 0, bytesTotal: bytesOf(files) };
        return { part, store: 0, freed: 0 };
      }
      const sources = picked
        ? picked.map(localSource)
        : await remoteFiles(model, component, precision, context);
      const files = sources.map(({ name, size }) => ({ name, bytes: size }));
      const bytesTotal = bytesOf(files);
      const begun = await begunOf(model, component, precision, sources);
      if (replaced && model.isSharedInUse(component)) {
        const sentence = `Another model here has the ${component} of ${model.manifest.name} as well: in another form, it would be replaced for both.`;
        const remedy = 'Choose the precision that is here, or delete the other model first.';
        throw new KinoraError('MODEL_BUSY', sentence, { remedy });
      }
      const bytesLeft = Math.max(0, bytesTotal - begun.bytesDone);
      const blocks = sources.every(({ name }) => /\.gguf(@|$)/i.test(name));
      const whole =
        plan && isConverted(component) ? plan.storedBytes(component, precision, blocks) : null;
      const store = Math.max(0, (whole ?? bytesTotal) - begun.bytesStored);
      const freed = replaced?.bytesStored ?? begun.bytesFreed;
      return { part: { component, files, bytesLeft, bytesTotal }, store, freed };
    }),
  );
  const download = parts.reduce((sum, { part }) => sum + part.bytesLeft, 0);
  const store = parts.reduce((sum, part) => sum + part.store, 0);
  const freed = parts.reduce((sum, part) => sum + part.freed, 0);
  const left = storage.quota - storage.usage - store + freed;
  return { parts: parts.map(({ part }) => part), download, store, storage, left };
}

/** The name of a stored file without its revision. */
const path = (name: string) => name.replace(/@[^@]*$/, '');

function bytesOf(files: readonly { readonly bytes: number }[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** @throws KinoraError `STORAGE_FULL` with the numbers, when it does not fit */
export function requireRoom({ storage, left }: DownloadPlan): void {
  if (left >= 0 || storage.atLeast) return;
  const free = Math.max(0, storage.quota - storage.usage);
  throw new KinoraError(
    'STORAGE_FULL',
    `The model needs ${gibibytes(storage.quota - storage.usage - left)} in the browser's storage, ` +
      `but only ${gibibytes(free)} are free.`,
    { remedy: `Free ${gibibytes(-left)} of disk space, delete models, or choose a smaller one.` },
  );
}

/** A size as text: in GiB from 0.1 GiB on, in MiB below. */
export function gibibytes(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib >= 0.1 ? `${gib.toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

/** What is there of a download of these very files; of other files, only the bytes that become free. */
async function begunOf(
  model: ManagedModel,
  component: ComponentId,
  precision: Precision,
  sources: readonly Pick<ByteSource, 'identity' | 'size'>[],
) {
  const begun = await installProgress(model.folder.folder(component));
  if (!begun) return { bytesDone: 0, bytesStored: 0, bytesFreed: 0 };
  const { bytesDone, bytesStored } = begun;
  const same =
    model.begunIn(component, precision) &&
    begun.sources.length === sources.length &&
    begun.sources.every(
      ({ identity, size }, i) => sources[i]?.identity === identity && sources[i]?.size === size,
    );
  return same
    ? { bytesDone, bytesStored, bytesFreed: 0 }
    : { bytesDone: 0, bytesStored: 0, bytesFreed: bytesStored };
}

async function remoteFiles(
  { manifest, adapters: before }: ManagedModel,
  component: ComponentId,
  precision: Precision,
  { adapters = before, client, signal }: PlanContext,
) {
  const fetched = manifest.sources.find((source) => source.component === component)?.fetched;
  try {
    return await Promise.all(
      filesOf(manifest, component, precision, adapters).map(async (file) => {
        const { size, identity } = await client.file(file, signal);
        return { name: `${file.repository}/${file.path}`, size: fetched ?? size, identity };
      }),
    );
  } catch (thrown) {
    // The download itself reports it at this part, and fetches the others.
    if (isWithheld(thrown)) return [];
    throw thrown;
  }
}
