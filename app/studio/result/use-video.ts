import { type ErrorRecord, toKinoraError } from '../../../lib/contract';
import { readVideo } from '../../../lib/predictions/videos';
import { useAnswer } from '../../shared/browser';

export type VideoState =
  | { readonly status: 'reading' }
  | { readonly status: 'ready'; readonly file: File }
  | { readonly status: 'missing'; readonly error: ErrorRecord };

/** Reads a video from the origin private file system. */
export function useVideo(name: string): VideoState {
  const read = useAnswer<VideoState>(
    () =>
      readVideo(name).then(
        (file) => ({ status: 'ready', file }),
        (thrown: unknown) => ({ status: 'missing', error: toKinoraError(thrown).toRecord() }),
      ),
    [name],
  );
  return read ?? { status: 'reading' };
}
