import { createSHA256 } from 'hash-wasm';
import { z } from 'zod';
import { KinoraError, type LoraEntry } from '../../contract';
import { type ByteSource, SourceChanged } from '../byte-source';
import { openSafetensors } from '../checkpoint';
import { type HubClient, hubByteSource, localByteSource, parseAddress } from '../hub';
import type { StoreFolder } from '../store/folder';
import type { LoraFacts } from './environment';
import { listLoras, partialName, readLora, recordName, removeLora, writeLora } from './loras';

/** Bytes between two notes of how far it is. */
const noteBytes = 8 * 2 ** 20;
const readBytes = 8 * 2 ** 20;

/** A LoRA to be added. */
export type LoraSource = { readonly address: string } | { readonly file: File };

/** What fetching a LoRA is done with. */
export interface LoraContext {
  readonly folder: StoreFolder;
  readonly client: HubClient;
  /** Looks at its header. @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE` */
  readonly inspect: (source: ByteSource, name: string) => Promise<LoraFacts>;
  readonly onProgress: (name: string, bytesDone: number, bytesTotal: number) => void;
  readonly signal: AbortSignal;
  /** Runs the work with the lock held by nobody else; null when another has it. */
  readonly tryLock: <T>(
    name: string,
    work: () => Promise<T>,
  ) => Promise<{ readonly value: T } | null>;
}

const noteSchema = z.object({ identity: z.string(), bytes: z.int().min(0) });

/**
 * Fetches a LoRA, or takes a local one, after a look at its header. What is cut goes on at its byte, also
 * the next time that the same one is added.
 *
 * @throws KinoraError `ADDRESS_INVALID`, `LORA_INVALID`, `LORA_WRONG_BASE`, `DOWNLOAD_CORRUPT`,
 * `STORAGE_FULL`, `BUSY` while it is being added already, and what the hub answers
 */
export async function fetchLora(source: LoraSource, context: LoraContext): Promise<LoraEntry> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetchOnce(source, context);
    } catch (thrown) {
      // The file was replaced by another: what is there is useless, the new one is fetched whole.
      if (!(thrown instanceof SourceChanged) || attempt === 3) throw thrown;
    }
  }
}

async function fetchOnce(source: LoraSource, context: LoraContext): Promise<LoraEntry> {
  const { folder } = context;
  const opened = await open(source, context.client, context.signal);
  const name = await freeName(folder, opened);
  const facts = await context.inspect(opened.bytes, name);
  const kept = await context.tryLock(`kinora:lora:${name}`, () =>
    keep(opened, name, facts, context),
  );
  if (kept) return kept.value;
  throw new KinoraError('BUSY', `${name} is being added already, here or in another tab.`, {
    remedy: 'Wait until it is in the library.',
  });
}

/** Copies a LoRA into the library and lists it. */
async function keep(
  opened: OpenedLora,
  name: string,
  facts: LoraFacts,
  context: LoraContext,
): Promise<LoraEntry> {
  const { folder } = context;
  const known = await readLora(folder, name);
  if (known && known.sha256 === opened.bytes.sha256) return known;
  // From here on the file is not whole, so nothing may say that it is.
  await folder.remove(recordName(name));
  const sha256 = await copy(folder, name, opened.bytes, context);
  if (opened.bytes.sha256 !== null && opened.bytes.sha256 !== sha256) {
    await removeLora(folder, name);
    throw new KinoraError('DOWNLOAD_CORRUPT', `${name} is not what the hub announced.`);
  }
  const { size: bytes } = opened.bytes;
  const addedAt = new Date().toISOString();
  const entry = { name, bytes, sha256, source: opened.label, ...facts, addedAt };
  await writeLora(folder, entry);
  await folder.remove(partialName(name));
  return entry;
}

interface OpenedLora {
  readonly label: string;
  readonly fileName: string;
  readonly bytes: ByteSource;
}

async function open(
  source: LoraSource,
  client: HubClient,
  signal: AbortSignal,
): Promise<OpenedLora> {
  if ('file' in source) {
    const { file } = source;
    const bytes = localByteSource({ path: file.name, file });
    return { label: file.name, fileName: file.name, bytes };
  }
  const address = parseAddress(source.address, client.base);
  if (address.kind === 'link') {
    const file = await client.link(address.url, signal);
    const fileName = decodeURIComponent(new URL(address.url).pathname.split('/').at(-1) ?? '');
    return { label: address.url, fileName, bytes: hubByteSource(client, file) };
  }
  const { repository, revision } = address;
  const path =
    address.kind === 'file' ? address.path : await onlyLora(client, repository, revision, signal);
  const file = await client.file({ repository, path, revision }, signal);
  const fileName = path.split('/').at(-1) ?? path;
  return { label: `${repository}/${path}`, fileName, bytes: hubByteSource(client, file) };
}

async function onlyLora(
  client: HubClient,
  repository: string,
  revision: string,
  signal: AbortSignal,
): Promise<string> {
  const { files } = await client.list(repository, revision, signal);
  const found = [...files.keys()].filter((path) => path.endsWith('.safetensors'));
  const [only] = found;
  if (found.length === 1 && only !== undefined) return only;
  throw new KinoraError(
    'ADDRESS_INVALID',
    only === undefined
      ? `${repository} has no safetensors file.`
      : `${repository} has ${found.length} LoRAs: name one, such as ${repository}/${only}.`,
  );
}

/** A name for it: its file's own, with a number where another LoRA has that one. */
async function freeName(folder: StoreFolder, { fileName, label }: OpenedLora): Promise<string> {
  const stem = fileName.replace(/\.safetensors$/i, '').replaceAll(/[^\w.() +-]+/g, '_') || 'lora';
  const taken = await listLoras(folder);
  for (let n = 1; ; n++) {
    const name = `${n === 1 ? stem : `${stem} ${n}`}.safetensors`;
    const other = taken.find((entry) => entry.name === name);
    if (!other || other.source === label) return name;
  }
}

/** Copies a source into the folder, from where it stopped; gives its SHA-256. */
async function copy(
  folder: StoreFolder,
  name: string,
  source: ByteSource,
  { onProgress, signal }: LoraContext,
): Promise<string> {
  const hash = await createSHA256();
  let at = await resumeAt(folder, name, source.identity);
  const begun = at > 0 ? await folder.open(name) : null;
  for (let start = 0; begun && start < at; start += readBytes) {
    hash.update(await begun.read(start, Math.min(at, start + readBytes)));
  }
  const writer = await folder.write(name);
  let noted = at;
  async function note(): Promise<void> {
    await writer.flush();
    const { identity } = source;
    await folder.writeText(partialName(name), JSON.stringify({ identity, bytes: at }));
    noted = at;
  }
  try {
    await note();
    await writer.truncate(at);
    onProgress(name, at, source.size);
    for await (const bytes of source.stream(at, source.size, signal)) {
      await writer.write(at, bytes);
      hash.update(bytes);
      at += bytes.length;
      if (at - noted >= noteBytes) await note();
      onProgress(name, at, source.size);
    }
    await writer.flush();
  } catch (thrown) {
    await note().catch(() => undefined);
    throw thrown;
  } finally {
    await writer.close();
  }
  return hash.digest('hex');
}

async function resumeAt(folder: StoreFolder, name: string, identity: string): Promise<number> {
  const text = await folder.readText(partialName(name));
  const file = await folder.open(name);
  if (text === null || !file) return 0;
  try {
    const note = noteSchema.parse(JSON.parse(text));
    return note.identity === identity && file.size >= note.bytes ? note.bytes : 0;
  } catch {
    return 0;
  }
}

/** Reads the header of a LoRA. @throws KinoraError `LORA_INVALID` when there is none */
export async function openLoraHeader(source: ByteSource, name: string) {
  return openSafetensors(source).catch((cause: unknown) => {
    const unreadable =
      cause instanceof KinoraError && !/^(MODEL_FILE|TENSOR)_/.test(cause.code) ? cause : null;
    if (unreadable) throw unreadable;
    const sentence = `${name} is not a safetensors file that can be read.`;
    throw new KinoraError('LORA_INVALID', sentence, { cause });
  });
}
