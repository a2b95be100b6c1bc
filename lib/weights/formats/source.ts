import { KinoraError } from '../../contract';

/** A file of weights that is read by byte ranges. */
export interface WeightFile {
  /** Name for messages. */
  readonly name: string;
  /** Size in bytes. */
  readonly size: number;
  /**
   * Bytes `[start, end)`; always exactly `end − start` of them.
   *
   * @throws KinoraError `MODEL_FILE_TRUNCATED` when the file ends before `end`
   */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** A folder in the diffusers layout: on a server, on disk or in the browser's storage. */
export interface ModelFolder {
  /**
   * Opens a file for reading by ranges.
   *
   * @param path relative, with `/` between its parts
   * @throws KinoraError `MODEL_FILE_MISSING`
   */
  open(path: string): Promise<WeightFile>;
  /** A whole text file. @throws KinoraError `MODEL_FILE_MISSING` */
  text(path: string): Promise<string>;
  /** A whole JSON file. @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID` */
  json(path: string): Promise<unknown>;
  exists(path: string): Promise<boolean>;
}

/** A folder by how it opens a file, and knows of one. */
export function folderFrom(open: ModelFolder['open'], exists: ModelFolder['exists']): ModelFolder {
  async function text(path: string): Promise<string> {
    const file = await open(path);
    return new TextDecoder().decode(await file.read(0, file.size));
  }
  return { open, exists, text, json: async (path) => parseModelJson(path, await text(path)) };
}

/**
 * A Blob or File as a weight file: a LoRA that was chosen, a file of the OPFS store. Its reads throw
 * KinoraError `MODEL_FILE_MISSING` or `FILE_UNREADABLE` when it was deleted or changed since.
 */
export function blobFile(name: string, blob: Blob): WeightFile {
  return {
    name,
    size: blob.size,
    async read(start, end) {
      checkRange(name, blob.size, start, end);
      try {
        return new Uint8Array(await blob.slice(start, end).arrayBuffer());
      } catch (thrown) {
        throw readError(name, thrown);
      }
    },
  };
}

/** The browser's error for a file that it cannot read, as an error that names the file. */
export function readError(name: string, thrown: unknown): unknown {
  if (!(thrown instanceof DOMException)) return thrown;
  if (thrown.name === 'NotFoundError') {
    const sentence = `${name} is not there any more.`;
    return new KinoraError('MODEL_FILE_MISSING', sentence, { cause: thrown });
  }
  if (thrown.name === 'NotReadableError' || thrown.name === 'NotAllowedError') {
    const sentence = `${name} cannot be read: it was changed since, or another program holds it.`;
    return new KinoraError('FILE_UNREADABLE', sentence, { cause: thrown });
  }
  return thrown;
}

/** Parses JSON that belongs to the model. @throws KinoraError `MODEL_FILE_INVALID` */
export function parseModelJson(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new KinoraError('MODEL_FILE_INVALID', `${path} is not valid JSON.`, { cause });
  }
}

/**
 * Checks a range against the size of its file.
 *
 * @throws RangeError when it is no range at all
 * @throws KinoraError `MODEL_FILE_TRUNCATED` when it reaches past the end
 */
export function checkRange(name: string, size: number, start: number, end: number): void {
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || end < start) {
    throw new RangeError(`Not a byte range: [${start}, ${end}).`);
  }
  if (end > size) throw truncated(name, end, size);
}

/** The error for a file that should reach to byte `needed` and has only `size` bytes. */
export function truncated(name: string, needed: number, size: number): KinoraError {
  return new KinoraError(
    'MODEL_FILE_TRUNCATED',
    `${name} ends too early: ${needed} bytes are needed, ${size} are there.`,
  );
}

/** The error for a file whose content is not as its format has it. */
export function damaged(
  { name }: Pick<WeightFile, 'name'>,
  reason: string,
  cause?: unknown,
): KinoraError {
  return new KinoraError('MODEL_FILE_INVALID', `${name} is damaged: ${reason}.`, { cause });
}

/** Whether a file counts as not there: what systems write beside others (`.DS_Store`, `._name`) is no part of a model. */
export function isHidden(path: string): boolean {
  return /(^|\/)\.[^/]*$/.test(path);
}

/**
 * A path of a model folder, checked. Index files name other files, and they come from outside: nothing
 * may lead out of the folder.
 *
 * @throws KinoraError `MODEL_FILE_INVALID`
 */
export function checkPath(path: string): string {
  const parts = path.split('/');
  const bad = parts.some((part) => part === '' || part === '.' || part === '..');
  if (bad || path.includes('\\')) {
    throw new KinoraError('MODEL_FILE_INVALID', `"${path}" is not a path inside the model folder.`);
  }
  return path;
}

/**
 * A source file of a model that is read once from end to end while it is converted: a file on the hub,
 * or a local one. `read` is for its header; `stream` for everything after.
 */
export interface ByteSource extends WeightFile {
  /** Identity of the file: its etag on the hub, or name, size and date of a local file. */
  readonly identity: string;
  /** SHA-256 in hex as the hub announced it; null where it announced none. */
  readonly sha256: string | null;
  /** SHA-1 that git gives its content, where the hub announced that: of small files. */
  readonly gitSha1?: string | null;
  /**
   * As {@link WeightFile.read}; what is still on its way can be given up.
   *
   * @throws the signal's reason
   */
  read(start: number, end: number, signal?: AbortSignal): Promise<Uint8Array>;
  /**
   * Bytes `[start, end)` in ascending order, in pieces of any size. Cuts, refusals and slow answers are
   * healed inside, without fetching a byte twice; several ranges are in flight within bounded memory.
   *
   * @throws KinoraError `HUB_UNREACHABLE`, `HUB_BUSY`, … when it cannot be healed
   * @throws SourceChanged when the file is not the same any more
   */
  stream(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** All bytes of a stream of that length. */
export async function gathered(stream: AsyncIterable<Uint8Array>, length: number) {
  const whole = new Uint8Array(length);
  let at = 0;
  for await (const bytes of stream) {
    whole.set(bytes, at);
    at += bytes.length;
  }
  return whole;
}

/** The file behind a {@link ByteSource} was replaced by another: what is there of it must start over. */
export class SourceChanged extends Error {
  override readonly name = 'SourceChanged';

  constructor(readonly file: string) {
    super(`${file} was changed at its source.`);
  }
}

/** A folder inside a folder. */
export function subfolder(folder: ModelFolder, path: string): ModelFolder {
  return folderFrom(
    (name) => folder.open(`${path}/${name}`),
    (name) => folder.exists(`${path}/${name}`),
  );
}
