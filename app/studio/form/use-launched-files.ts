import { useEffect, useEffectEvent, useState } from 'react';
import { KinoraError } from '../../../lib/contract';
import { lostShare, takeSharedFiles } from '../../../lib/offline/shared-files';
import { useStable, useSteady } from '../../shared/use-stable';
import type { FileInput } from './use-file-input';

/** What an installed app is started with: files of `file_handlers`. Not in the DOM's types. */
interface LaunchQueue {
  setConsumer(
    consumer: (launch: { readonly files: readonly FileSystemFileHandle[] }) => void,
  ): void;
}

/** Files that came by the share target, and wait for an answer. */
export interface SharedFiles {
  readonly files: readonly File[];
  readonly use: () => void;
  readonly discard: () => void;
}

/**
 * Passes on the files with which the installed app was opened, and asks about those that were shared with it:
 * any website can send some, and nothing in the request tells it from another app.
 *
 * @param ready once the form takes files: its last draft would replace them
 */
export function useLaunchedFiles(
  ready: boolean,
  { openFiles, showError }: Pick<FileInput, 'openFiles' | 'showError'>,
): SharedFiles {
  const [files, setFiles] = useState<readonly File[]>([]);
  const onOpened = useEffectEvent((opened: readonly File[]) => {
    if (opened.length > 0) void openFiles(opened);
  });
  const onLost = useEffectEvent(() => showError(new KinoraError('SHARED_FILES_LOST')));
  useEffect(() => {
    if (!ready) return;
    if (window.location.search === lostShare) {
      window.history.replaceState(null, '', window.location.pathname);
      onLost();
    }
    // A browser that blocks storage has none.
    takeSharedFiles().then(
      (shared) => shared.length > 0 && setFiles(shared),
      () => {},
    );
    const { launchQueue } = window as { launchQueue?: LaunchQueue };
    launchQueue?.setConsumer((launch) => {
      Promise.all(launch.files.map((handle) => handle.getFile())).then(onOpened, () => {});
    });
  }, [ready]);
  const actions = useStable({
    use() {
      setFiles([]);
      void openFiles(files);
    },
    discard: () => setFiles([]),
  });
  return useSteady({ files, ...actions });
}
