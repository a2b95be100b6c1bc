import { constants, existsSync } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  KinoraError,
  type ModelManifest,
  maxImageBytes,
  parseManifest,
  sampleImagePath,
} from '../contract';
import { userAgent } from '../contract/user-agent';
import { checkImageBytes, sniffImage } from '../video/sniff';
import { fromUser, root } from './paths';

/** A file as it is handed to the page. */
export interface InputFile {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

const fetchLimitMs = 30_000;

/**
 * Reads the still and checks it by its bytes, so that a bad one is refused before a browser starts.
 *
 * @param image file or http(s) address; undefined for the bundled sample
 * @param option that it was given to
 * @throws KinoraError one of the `IMAGE_…` codes or `FILE_UNREADABLE`
 */
export async function readImage(
  image: string | undefined,
  signal: AbortSignal,
  option = '--image',
): Promise<InputFile> {
  const isUrl = image !== undefined && /^https?:\/\//i.test(image);
  const local = image === undefined ? path.join(root, 'public', sampleImagePath) : fromUser(image);
  const file = isUrl ? image : local;
  const content = isUrl ? await fetchImage(file, signal) : await readLocal(file, option);
  const { format, bytes } = await sniffImage(content);
  const name = isUrl ? path.posix.basename(new URL(file).pathname) : path.basename(file);
  return {
    name: name || `image.${format}`,
    mimeType: `image/${format}`,
    buffer: Buffer.from(bytes),
  };
}

async function readLocal(file: string, option: string): Promise<Buffer> {
  const stats = await stat(file).catch((cause: unknown) => {
    throw new KinoraError('IMAGE_MISSING', `There is no image at ${file}.`, {
      cause,
      remedy: `Check the path given to ${option}.`,
    });
  });
  if (!stats.isFile()) throw new KinoraError('IMAGE_UNREADABLE', `${file} is not a file.`);
  checkImageBytes(stats.size);
  return await readFile(file).catch((cause: unknown) => {
    throw new KinoraError('FILE_UNREADABLE', `The image ${file} could not be read.`, { cause });
  });
}

async function fetchImage(address: string, signal: AbortSignal): Promise<Buffer> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(fetchLimitMs)]);
  try {
    const { KINORA_REPORT_ADDRESS, KINORA_PUBLIC_URL } = process.env;
    const headers = { 'User-Agent': userAgent(KINORA_REPORT_ADDRESS || KINORA_PUBLIC_URL) };
    const response = await fetch(address, { headers, signal: limit });
    if (!response.ok) throw unreachable(`${address} answered ${response.status}.`);
    if (Number(response.headers.get('content-length')) > maxImageBytes) {
      throw new KinoraError('IMAGE_TOO_LARGE');
    }
    // The header may be wrong or missing, so the received bytes are counted.
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > maxImageBytes) throw new KinoraError('IMAGE_TOO_LARGE');
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    if (error instanceof KinoraError) throw error;
    signal.throwIfAborted();
    const detail = limit.aborted
      ? `no answer within ${fetchLimitMs / 1000} s`
      : reason(error as Error);
    throw unreachable(`${address} could not be fetched: ${detail}.`, error);
  }
}

function unreachable(sentence: string, cause?: unknown): KinoraError {
  return new KinoraError('IMAGE_UNREACHABLE', sentence, { cause });
}

/** The message of a failed fetch is in its cause. */
function reason(error: Error): string {
  return error.cause instanceof Error && error.cause.message ? error.cause.message : error.message;
}

/**
 * Checks that an adapter's file exists and can be read. The engine checks its contents.
 *
 * @throws KinoraError `LORA_MISSING`
 */
export async function checkLora(file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined);
  if (!stats?.isFile()) throw new KinoraError('LORA_MISSING', `There is no LoRA at ${file}.`);
  await access(file, constants.R_OK).catch((cause: unknown) => {
    throw new KinoraError('FILE_UNREADABLE', `The LoRA ${file} could not be read.`, { cause });
  });
}

/** Adapters for the page: files of this machine, and names of its library. */
export interface SortedLoras {
  readonly loras: readonly { readonly path: string; readonly scale: number }[];
  readonly libraryLoras: readonly { readonly name: string; readonly scale: number }[];
}

/**
 * Separates files from names of the library. An existing file wins.
 *
 * @param library whether there is a library whose names count
 * @throws KinoraError `LORA_MISSING`; of a name, only the library can say
 */
export async function sortLoras(
  named: readonly { readonly path: string; readonly scale: number }[],
  library: boolean,
): Promise<SortedLoras> {
  const loras = [];
  const libraryLoras = [];
  for (const { path: name, scale } of named) {
    const file = fromUser(name);
    const isName = library && /^[^/\\]+\.safetensors$/.test(name) && !existsSync(file);
    if (isName) libraryLoras.push({ name, scale });
    else {
      await checkLora(file);
      loras.push({ path: file, scale });
    }
  }
  return { loras, libraryLoras };
}

/**
 * The manifest of a model that comes with Kinora; null for one of `added`, whose manifest lies in the browser's storage.
 *
 * @param added ids of the models that were added
 * @throws KinoraError `MODEL_UNKNOWN` naming the ids there are, or `MODEL_MANIFEST_INVALID`
 */
export async function readManifest(id: string): Promise<ModelManifest>;
export async function readManifest(
  id: string,
  added: readonly string[],
): Promise<ModelManifest | null>;
export async function readManifest(
  id: string,
  added: readonly string[] = [],
): Promise<ModelManifest | null> {
  const folder = path.join(root, 'public', 'models');
  const list = JSON.parse(await readFile(path.join(folder, 'index.json'), 'utf8'));
  const listed = list as { id: string; hidden?: boolean }[];
  if (listed.some((entry) => entry.id === id)) {
    return parseManifest(JSON.parse(await readFile(path.join(folder, `${id}.json`), 'utf8')));
  }
  if (added.includes(id)) return null;
  const shown = listed.filter(({ hidden }) => !hidden).map((entry) => entry.id);
  throw new KinoraError('MODEL_UNKNOWN', `There is no model with the id ${id}.`, {
    remedy: `Use one of: ${[...shown, ...added].join(', ')}.`,
  });
}
