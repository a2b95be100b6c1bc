import type { LocalFile } from '../../lib/contract';

/** What a file input holds: a folder's files with their paths, its own name first, or single files. */
export function readPicked(files: Iterable<File>): LocalFile[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/**
 * Every file that was dropped, those inside of folders included, with paths as {@link readPicked} has
 * them. To be called in the drop event itself: a browser empties the transfer afterwards.
 */
export async function readDropped(transfer: DataTransfer): Promise<LocalFile[]> {
  const reading = [...transfer.items].map((item) => {
    const entry = item.webkitGetAsEntry();
    if (entry) return readEntry(entry);
    // A file outside of a folder of this machine, such as an attachment, has no entry.
    const file = item.getAsFile();
    return file ? [{ path: file.name, file }] : [];
  });
  return (await Promise.all(reading)).flat();
}

async function readEntry(entry: FileSystemEntry): Promise<LocalFile[]> {
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ path: entry.fullPath.replace(/^\//, ''), file }];
  }
  if (!isFolder(entry)) return [];
  const reader = entry.createReader();
  const files: LocalFile[] = [];
  for (;;) {
    // A folder comes in parts, until an empty one.
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    );
    if (batch.length === 0) return files;
    files.push(...(await Promise.all(batch.map(readEntry))).flat());
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}
