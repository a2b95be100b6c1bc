import { z } from 'zod';
import { precisions, type StoredComponent } from '../../contract';
import { readRecord, type StoreFolder } from './folder';
import { encodings } from './layout';

const componentSchema = z.object({
  component: z.string().min(1),
  sources: z.array(
    z.object({ name: z.string(), bytes: z.int().min(0), sha256: z.string().nullable() }),
  ),
  sourceType: z.string(),
  precision: z.enum(precisions),
  worst: z.object({ tensor: z.string(), relativeError: z.number() }).nullable(),
  bytesStored: z.int().min(0),
  completedAt: z.string(),
  verifiedAt: z.string(),
});

const tensorSchema = z.object({
  name: z.string(),
  encoding: z.enum(encodings),
  shape: z.array(z.int().min(0)),
  pack: z.string(),
  offset: z.int().min(0),
  bytes: z.int().min(0),
  /** The source's element type. */
  sourceType: z.string(),
  /** ‖stored − source‖ / ‖source‖; 0 where nothing was rounded. */
  relativeError: z.number(),
  /** One for each so many rows; of their elements, then their scales. */
  rowsPerChecksum: z.int().min(1),
  checksums: z.array(z.string()),
});
export type StoredTensor = z.output<typeof tensorSchema>;

const manifestSchema = z.object({
  version: z.literal(1),
  stored: componentSchema,
  /** Fingerprint of sources and layout: whether an installation would give this very thing. */
  plan: z.string(),
  /** Name → size in bytes: packs, or the files of the configuration. */
  files: z.record(z.string(), z.int().min(0)),
  /** In the order of the recipe. */
  tensors: z.array(tensorSchema),
  /** Checksums of whole files: of those that are kept as they came. */
  fileChecksums: z.record(z.string(), z.string()),
});

/** What a complete component consists of. It is written last: a component without it is not there. */
export type ComponentManifest = Omit<z.output<typeof manifestSchema>, 'stored'> & {
  readonly stored: StoredComponent;
};

const fileName = 'manifest.json';

/** The manifest of a component; null when it is not complete, or by another version of Kinora. */
export async function readManifest(folder: StoreFolder): Promise<ComponentManifest | null> {
  return readRecord(folder, fileName, manifestSchema.parse);
}

/** Declares a component complete, wholly or not at all. @throws KinoraError `STORAGE_FULL` */
export async function writeManifest(
  folder: StoreFolder,
  manifest: ComponentManifest,
): Promise<void> {
  await folder.writeText(fileName, JSON.stringify(manifest));
}

/** Makes a component count as absent. Its other files stay. */
export async function deleteManifest(folder: StoreFolder): Promise<void> {
  await folder.remove(fileName);
}
