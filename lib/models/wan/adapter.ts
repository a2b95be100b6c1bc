import {
  type AdapterPart,
  adapterParts,
  componentName,
  KinoraError,
  type ModelManifest,
  toKinoraError,
} from '../../contract';
import type { CheckedPart } from '../../pipeline/installation';
import type { AdapterScales, ModelAdapter } from '../../pipeline/model';
import {
  type Checkpoint,
  checkpointOf,
  type LocatedTensors,
  locateTensors,
  type ModelFolder,
  openSafetensors,
  parseModelJson,
  type TensorFile,
} from '../../weights';
import { openStoredComponent, type StoreFolder } from '../../weights/store';
import { checkLora, type Lora, type LoraArchitecture, parseLora } from '../layers/lora';
import { plainRecipe } from '../layers/recipes';

/** File beside a stored adapter with the metadata that its own file had. */
const adapterMetadata = 'metadata.json';

/** A LoRA that comes with a model, for its profiles. */
export interface WanAdapter extends ModelAdapter {
  /**
   * @param part of a pair; one that is no pair is the same for both
   * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
   */
  read(part?: string): Promise<Lora>;
}

/** The adapters that a model has, by their parts. */
export type WanAdapters = Readonly<Partial<Record<AdapterPart, WanAdapter>>>;

type AdapterFile = Checkpoint & { readonly metadata: ReadonlyMap<string, string> };

/** The adapters of a bundled model, each `adapter.safetensors` in the folder of its part. */
export function bundledAdapters(
  folder: ModelFolder,
  architecture: LoraArchitecture,
): Promise<WanAdapters> {
  return adaptersOf(async (part) => {
    const file = `${part}/adapter.safetensors`;
    if (!(await folder.exists(file))) return null;
    return adapterOf(await openSafetensors(await folder.open(file)), null, file, architecture);
  });
}

/** The adapters of an installed model. */
export function storedAdapters(
  folder: StoreFolder,
  architecture: LoraArchitecture,
): Promise<WanAdapters> {
  return adaptersOf(async (id) => {
    const part = folder.folder(id);
    if (!(await part.open('manifest.json'))) return null;
    const checkpoint = await openStoredComponent(part);
    const text = (await part.readText(adapterMetadata)) ?? '{}';
    const metadata = new Map(Object.entries(parseModelJson(adapterMetadata, text) as object));
    const source = checkpoint.stored.sources[0]?.name ?? '';
    return adapterOf({ ...checkpoint, metadata }, source, source, architecture);
  });
}

async function adaptersOf(
  open: (part: AdapterPart) => Promise<WanAdapter | null>,
): Promise<WanAdapters> {
  const adapters: Partial<Record<AdapterPart, WanAdapter>> = {};
  for (const part of adapterParts) {
    const adapter = await open(part);
    if (adapter) adapters[part] = adapter;
  }
  return adapters;
}

/** An adapter as a run uses it. */
export interface ScaledAdapter {
  readonly adapter: WanAdapter;
  readonly scale: number;
  /** Tells it and its scale from others. */
  readonly id: string;
}

/**
 * Those of a model's own adapters that have a scale.
 *
 * @throws KinoraError `MODEL_FILE_MISSING` where one of them is absent
 */
export function scaledAdapters(
  adapters: WanAdapters,
  scales: AdapterScales,
  manifest: ModelManifest,
): ScaledAdapter[] {
  return adapterParts.flatMap((part) => {
    const scale = scales[part];
    if (scale === undefined) return [];
    const adapter = adapters[part];
    if (!adapter) {
      const what = componentName(part, manifest).toLowerCase();
      throw new KinoraError('MODEL_FILE_MISSING', `${manifest.name} has no ${what} here.`);
    }
    return [{ adapter, scale, id: JSON.stringify([part, adapter.source, scale]) }];
  });
}

function adapterOf(
  checkpoint: AdapterFile,
  source: string | null,
  name: string,
  architecture: LoraArchitecture,
): WanAdapter {
  const parts = new Set([...checkpoint.names()].map(partOf));
  const all = [...parts].map((part) => viewOf(checkpoint, part));
  return {
    source,
    misfit: misfitOf(() => {
      for (const view of all) checkLora(view, architecture, name);
    }),
    read: (part = '') =>
      parseLora(viewOf(checkpoint, parts.has(part) ? part : ''), architecture, name),
  };
}

/** The part of a pair that a tensor of the store belongs to; empty where there is no pair. */
function partOf(tensor: string): string {
  return /^([a-z_0-9]+)\//.exec(tensor)?.[1] ?? '';
}

/** The tensors of a part by the names of its own file. */
function viewOf(checkpoint: AdapterFile, part: string): AdapterFile {
  if (part === '') return checkpoint;
  const stored = (name: string) => `${part}/${name}`;
  const names = [...checkpoint.names()]
    .filter((name) => partOf(name) === part)
    .map((name) => name.slice(part.length + 1));
  return {
    ...checkpoint,
    names: () => names.values(),
    has: (name) => checkpoint.has(stored(name)),
    shape: (name) => checkpoint.shape(stored(name)),
    bytes: (name) => checkpoint.bytes(stored(name)),
    dtype: (name) => checkpoint.dtype(stored(name)),
    read: (name) => checkpoint.read(stored(name)),
  };
}

function misfitOf(check: () => unknown): KinoraError | null {
  try {
    check();
    return null;
  } catch (thrown) {
    return toKinoraError(thrown);
  }
}

/**
 * Checks an adapter by its header: its tensors are kept as they come, with the metadata of the file. The tensors of
 * each file of a pair are kept under the name of its part.
 *
 * @param partOfFile names the part that a file of a pair is
 * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
 */
export function checkAdapter(
  id: AdapterPart,
  files: readonly TensorFile[],
  architecture: LoraArchitecture,
  partOfFile: (file: TensorFile) => string | null = () => null,
): CheckedPart {
  const tensors: LocatedTensors = new Map(
    pairOf(files, partOfFile).flatMap(([part, own]) => {
      const located = locateTensors(own);
      const name = own.map(({ file }) => file.name).join(', ');
      checkLora(checkpointOf(name, located), architecture, name);
      return [...located].map(([tensor, locatedTensor]) => [part + tensor, locatedTensor] as const);
    }),
  );
  const shapes = [...tensors].map(([tensor, { entry }]) => [tensor, entry] as const);
  const metadata = Object.fromEntries(files.flatMap((file) => [...file.metadata]));
  return {
    recipe: plainRecipe(id, new Map(shapes)),
    tensors,
    files: [{ name: adapterMetadata, bytes: new TextEncoder().encode(JSON.stringify(metadata)) }],
  };
}

/** Files by the prefix of their part; together without one where they are no pair. */
function pairOf(
  files: readonly TensorFile[],
  partOfFile: (file: TensorFile) => string | null,
): (readonly [prefix: string, files: readonly TensorFile[]])[] {
  const parts = files.map((file) => [partOfFile(file), file] as const);
  const named = new Set(parts.map(([part]) => part));
  if (files.length < 2 || named.size < files.length || named.has(null)) return [['', files]];
  return parts.map(([part, file]) => [`${part}/`, [file]]);
}
