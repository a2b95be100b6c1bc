import { KinoraError, type LocalFile } from '../contract';
import type { ByteSource } from '../weights/formats/byte-source';
import { localByteSource } from '../weights/hub';

/** Begins the identity of every local file: nothing on a hub is called so. */
const prefix = 'local:';

/**
 * A picked or dropped file, to be read once. It is the same file wherever it lies, as long as its name,
 * size and date are.
 */
export function localSource(local: LocalFile): ByteSource {
  const { size, lastModified } = local.file;
  const identity = `${prefix}${nameOf(local.path)}:${size}:${lastModified}`;
  return { ...localByteSource(local), identity };
}

/** Whether a source, by its identity, is a local file. */
export function isLocal({ identity }: Pick<ByteSource, 'identity'>): boolean {
  return identity.startsWith(prefix);
}

/** The error for a download that came from local files, which a worker has not after its start. */
export function chooseAgain(names: readonly string[]): KinoraError {
  const list = names.map((name) => `"${nameOf(name)}"`).join(', ');
  const what = names.length > 1 ? 'files' : 'file';
  return new KinoraError('FILE_UNREADABLE', `This comes from your ${what} ${list}.`, {
    remedy: `Choose the ${what} again: it goes on where it stopped.`,
  });
}

function nameOf(path: string): string {
  return path.split('/').at(-1) ?? path;
}
