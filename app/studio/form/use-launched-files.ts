import { useEffect, useEffectEvent } from 'react';
import { takeSharedFiles } from '../../../lib/offline/shared-files';

/** What an installed app is started with: files of `file_handlers`. Not in the DOM's types. */
interface LaunchQueue {
  setConsumer(
    consumer: (launch: { readonly files: readonly FileSystemFileHandle[] }) => void,
  ): void;
}

/**
 * Passes on the files with which the installed app was started: opened with it, dropped on its icon, or
 * shared to it by another app.
 *
 * @param ready once the form takes files: its last draft would replace them
 */
export function useLaunchedFiles(
  ready: boolean,
  addFiles: (files: readonly File[]) => Promise<void>,
): void {
  const onFiles = useEffectEvent((files: readonly File[]) => {
    if (files.length > 0) void addFiles(files);
  });
  useEffect(() => {
    if (!ready) return;
    // A browser that blocks storage has none.
    takeSharedFiles().then(onFiles, () => {});
    const { launchQueue } = window as { launchQueue?: LaunchQueue };
    launchQueue?.setConsumer(({ files }) => {
      Promise.all(files.map((handle) => handle.getFile())).then(onFiles, () => {});
    });
  }, [ready]);
}
