/**
 * Files that another app shared with this one: the service worker gets them as a form, the studio takes
 * them. They wait in a cache of their own, since the page opens after the request has ended.
 */
const cacheName = 'kinora-shared';
const nameHeader = 'X-File-Name';

/** Path of the `share_target`, and its field with the files, in `app/manifest.json`. */
export const sharePath = '/share';
export const shareField = 'files';

/** Query of the studio's address after a share whose files could not be kept. */
export const lostShare = '?shared=lost';

/**
 * Keeps the files of a form until {@link takeSharedFiles}; those of an earlier one are replaced.
 *
 * @throws Error where the storage is full or blocked; nothing is kept then
 */
export async function keepSharedFiles(form: FormData): Promise<void> {
  await caches.delete(cacheName);
  const cache = await caches.open(cacheName);
  try {
    for (const [index, entry] of form.getAll(shareField).entries()) {
      if (typeof entry === 'string') continue;
      const headers = { [nameHeader]: encodeURIComponent(entry.name), 'Content-Type': entry.type };
      await cache.put(`/shared/${index}`, new Response(entry, { headers }));
    }
  } catch (error) {
    await caches.delete(cacheName);
    throw error;
  }
}

/** The files that wait, once. */
export async function takeSharedFiles(): Promise<File[]> {
  if (!(await caches.has(cacheName))) return [];
  const cache = await caches.open(cacheName);
  const files: File[] = [];
  for (const request of await cache.keys()) {
    const response = await cache.match(request);
    if (!response) continue;
    const name = decodeURIComponent(response.headers.get(nameHeader) ?? 'file');
    const { type } = await response.clone().blob();
    files.push(new File([await response.blob()], name, { type }));
  }
  await caches.delete(cacheName);
  return files;
}
