import {
  type ComponentId,
  type DownloadPlan,
  KinoraError,
  type Precision,
  type StorageReport,
} from '../../contract';
import type { HubClient } from '../hub';
import { installProgress } from '../store';
import type { Architecture, ModelPlan } from './environment';
import type { ManagedModel } from './managed-model';
import { configurationOf, filesOf, type LocalFiles } from './sources';

/**
 * What a download will take, before it starts.
 *
 * @param only the components to count; all when absent
 * @throws KinoraError what the hub answers, and `MODEL_CONFIG_INVALID`
 */
export async function planDownload(
  model: ManagedModel,
  precision: Precision,
  client: HubClient,
  architecture: Architecture,
  storage: StorageReport,
  local: LocalFiles = new Map(),
  only?: readonly ComponentId[],
): Promise<DownloadPlan> {
  const plan = await architecture.plan(await configurationOf(model, precision, client));
  const wanted = model.parts.filter(({ component }) => only?.includes(component) ?? true);
  const parts = await Promise.all(
    wanted.map(async ({ component }) => {
      const files = await filesAndSizes(model, component, precision, client, local);
      const bytesTotal = files.reduce((sum, { bytes }) => sum + bytes, 0);
      if (model.has(component, precision)) {
        return { part: { component, files, bytesLeft: 0, bytesTotal }, store: 0 };
      }
      const begun = await installProgress(model.folder.folder(component));
      const bytesLeft = Math.max(0, bytesTotal - (begun?.bytesDone ?? 0));
      const whole = storedSize(plan, component, precision) ?? bytesTotal;
      const store = Math.max(0, whole - (begun?.bytesStored ?? 0));
      return { part: { component, files, bytesLeft, bytesTotal }, store };
    }),
  );
  const download = parts.reduce((sum, { part }) => sum + part.bytesLeft, 0);
  const store = parts.reduce((sum, part) => sum + part.store, 0);
  const left = storage.quota - storage.usage - store;
  return { parts: parts.map(({ part }) => part), download, store, storage, left };
}

/** @throws KinoraError `STORAGE_FULL` with the numbers, when there is too little room */
export function requireRoom({ store, storage, left }: DownloadPlan): void {
  if (left >= 0 || storage.atLeast) return;
  const free = Math.max(0, storage.quota - storage.usage);
  throw new KinoraError(
    'STORAGE_FULL',
    `The model needs ${gibibytes(store)} in the browser's storage, ` +
      `but only ${gibibytes(free)} are free.`,
    { remedy: `Free ${gibibytes(-left)} of disk space, delete models, or choose a smaller one.` },
  );
}

function gibibytes(bytes: number): string {
  const gib = bytes / 2 ** 30;
  return gib >= 0.1 ? `${gib.toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

function storedSize(plan: ModelPlan, component: ComponentId, precision: Precision): number | null {
  return component === 'configuration' ? null : plan.storedBytes(component, precision);
}

async function filesAndSizes(
  model: ManagedModel,
  component: ComponentId,
  precision: Precision,
  client: HubClient,
  local: LocalFiles,
): Promise<readonly { name: string; bytes: number }[]> {
  const picked = local.get(component);
  if (picked) return picked.map(({ path, file }) => ({ name: path, bytes: file.size }));
  return Promise.all(
    filesOf(model.manifest, component, precision).map(async (file) => {
      const { size } = await client.file(file);
      return { name: `${file.repository}/${file.path}`, bytes: size };
    }),
  );
}
