import {
  bareAddress,
  KinoraError,
  type Licence,
  type LoraEntry,
  noiseOfName,
  toKinoraError,
} from '../contract';
import type { LoraFacts } from '../pipeline/installation';
import type { ByteSource } from '../weights/formats/source';
import { type HubClient, hubByteSource, lorasAt, parseAddress } from '../weights/hub';
import {
  createSourceHash,
  fetchFile,
  forgetFetched,
  readChecked,
  type StoreFolder,
  startingOver,
} from '../weights/store';
import { isTransient } from './download';
import { gibibytes } from './download-plan';
import type { LibraryEnvironment } from './environment';
import { localSource } from './local-files';
import { listLoras, loraLock, readLora, removeLora, writeLora } from './loras';
import { licenceOf, unknownLicence } from './sources';

/** A LoRA to be added. */
export type LoraSource = { readonly address: string } | { readonly file: File };

/** Dependencies of the download of a LoRA. */
export interface LoraContext {
  readonly environment: Pick<LibraryEnvironment, 'loras' | 'storage' | 'tryLock'>;
  readonly client: HubClient;
  /** Finds the file: it gives up soon, as a person waits for it. */
  readonly lookup: HubClient;
  /** Looks at its header. @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE` */
  readonly inspect: (source: ByteSource, name: string) => Promise<LoraFacts>;
  readonly onProgress: (name: string, bytesDone: number, bytesTotal: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Fetches a LoRA, or takes a local one, after a look at its header. Where the connection is lost, what is there stays
 * until the page is closed: added again, it goes on. Every other failure leaves no file behind. A LoRA that is stored
 * already, by size and SHA-256, is not stored twice.
 *
 * @throws KinoraError `ADDRESS_INVALID`, `LORA_INVALID`, `LORA_WRONG_BASE`, `DOWNLOAD_CORRUPT`,
 * `STORAGE_FULL`, `FILE_UNREADABLE`, `BUSY` while it is being added already, and what the hub answers
 * @throws the signal's reason
 */
export function fetchLora(source: LoraSource, context: LoraContext): Promise<LoraEntry> {
  return startingOver(() => fetchOnce(source, context), context.signal);
}

async function fetchOnce(source: LoraSource, context: LoraContext): Promise<LoraEntry> {
  const { environment, signal } = context;
  const { loras: folder } = environment;
  const opened = await open(source, context);
  const facts = await context.inspect(opened.bytes, opened.fileName || opened.label);
  for (;;) {
    const free = await findPlace(folder, opened, signal);
    if (typeof free !== 'string') return free;
    const kept = await environment.tryLock(loraLock(free), async () => {
      // Another tab may have added one of this name meanwhile.
      if (await readLora(folder, free)) return null;
      return keep(opened, free, facts, context);
    });
    if (kept?.value) return kept.value;
    if (kept) continue;
    throw new KinoraError('BUSY', `${free} is being added already, here or in another tab.`, {
      remedy: 'Wait until it is in the library.',
    });
  }
}

/** Copies a LoRA into the library and lists it. */
async function keep(
  opened: OpenedLora,
  name: string,
  facts: LoraFacts,
  context: LoraContext,
): Promise<LoraEntry> {
  const { environment, signal, onProgress } = context;
  const { loras: folder } = environment;
  const { bytes: source } = opened;
  const { size: bytes } = source;
  try {
    await requireRoom(name, bytes, context);
    const fetching = { source, hash: await createSourceHash(), signal };
    const report = (done: number) => onProgress(name, done, bytes);
    const sha256 = await fetchFile(folder, name, fetching, report);
    const { label, licence } = opened;
    const same = (await listLoras(folder)).find(
      (entry) => entry.source === label && entry.bytes === bytes && entry.sha256 === sha256,
    );
    if (same) {
      await removeLora(folder, name);
      return same;
    }
    const addedAt = new Date().toISOString();
    const { rank, base, noise, triggerWords } = facts;
    const fixed = { rank, base, ...(noise && { noise }), triggerWords, addedAt };
    const entry = { name, bytes, sha256, source: label, licence, ...fixed };
    await writeLora(folder, entry);
    await forgetFetched(folder, name);
    return entry;
  } catch (thrown) {
    if (signal.aborted || !isTransient(toKinoraError(thrown))) await removeLora(folder, name);
    throw thrown;
  }
}

/** @throws KinoraError `STORAGE_FULL` with the numbers */
async function requireRoom(
  name: string,
  bytes: number,
  { environment }: LoraContext,
): Promise<void> {
  const { usage, quota } = await environment.storage();
  const free = Math.max(0, quota - usage);
  if (bytes <= free) return;
  throw new KinoraError(
    'STORAGE_FULL',
    `${name} needs ${gibibytes(bytes)} in the browser's storage, but only ${gibibytes(free)} are free.`,
    { remedy: `Free ${gibibytes(bytes - free)} of disk space, or delete models or LoRAs.` },
  );
}

interface OpenedLora {
  readonly licence: Licence;
  readonly label: string;
  readonly fileName: string;
  readonly bytes: ByteSource;
  /** Whether it can be read again at no cost. */
  readonly local: boolean;
}

async function open(
  source: LoraSource,
  { client, lookup, signal }: LoraContext,
): Promise<OpenedLora> {
  if ('file' in source) {
    const { file } = source;
    const bytes = localSource({ path: file.name, file });
    return { licence: unknownLicence, label: file.name, fileName: file.name, bytes, local: true };
  }
  const address = parseAddress(source.address, client.base);
  if (address.kind === 'link') {
    const file = await lookup.link(address.url, signal);
    const { fileName = '' } = file;
    const bytes = hubByteSource(client, file);
    const label = bareAddress(address.url);
    return { licence: unknownLicence, label, fileName, bytes, local: false };
  }
  const { repository, revision } = address;
  const [path] = await lorasAt(lookup, address, signal);
  const file = await lookup.file({ repository, path, revision }, signal);
  const fileName = nameOfPath(path);
  return {
    licence: licenceOf(await lookup.list(repository, revision, signal), client),
    label: `${repository}/${path}`,
    fileName,
    bytes: hubByteSource(client, file),
    local: false,
  };
}

/** Address of the other file of a pair; null where the source is no pair of a repository. */
export async function findOther(source: LoraSource, client: HubClient): Promise<LoraSource | null> {
  if ('file' in source) return null;
  const address = parseAddress(source.address, client.base);
  if (address.kind === 'link') return null;
  const [, other] = await lorasAt(client, address);
  return other ? { address: client.fileUrl(address.repository, address.revision, other) } : null;
}

/** A file's name, with the word of its folder where only that tells its half of a pair. */
function nameOfPath(path: string): string {
  const name = path.split('/').at(-1) ?? path;
  const noise = noiseOfName(name) ? undefined : noiseOfName(path)?.noise;
  return noise ? name.replace(/(\.safetensors)?$/i, `-${noise}-noise$1`) : name;
}

/**
 * A free name for it: its file's own, with a number where another LoRA has that one. The entry itself
 * where it is there already.
 */
async function findPlace(
  folder: StoreFolder,
  opened: OpenedLora,
  signal: AbortSignal,
): Promise<LoraEntry | string> {
  const bare = opened.fileName.replace(/\.safetensors$/i, '');
  const stem = bare.replaceAll(/[^\w.() +-]+/g, '_') || 'lora';
  for (let n = 1; ; n++) {
    const name = `${n === 1 ? stem : `${stem}-${n}`}.safetensors`;
    const other = await readLora(folder, name);
    if (!other) return name;
    if (other.source !== opened.label || other.bytes !== opened.bytes.size) continue;
    // The SHA-256 of a local file is known only after reading it; that of a link only after fetching it.
    const hash = await createSourceHash();
    const fetching = { source: opened.bytes, hash, signal };
    const sha256 = opened.local
      ? await readChecked(fetching, { write: () => undefined })
      : opened.bytes.sha256;
    if (sha256 === other.sha256) return other;
  }
}
