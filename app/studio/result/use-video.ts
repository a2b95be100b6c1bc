import { useEffect, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../../lib/contract';
import { readVideo } from '../../../lib/predictions/videos';

export type VideoState =
  | { readonly status: 'reading' }
  | { readonly status: 'ready'; readonly file: File }
  | { readonly status: 'missing'; readonly error: ErrorRecord };

/** Reads a video from the origin private file system. */
export function useVideo(name: string): VideoState {
  const [state, setState] = useState<VideoState>({ status: 'reading' });
  useEffect(() => {
    let current = true;
    setState({ status: 'reading' });
    readVideo(name).then(
      (file) => current && setState({ status: 'ready', file }),
      (thrown: unknown) =>
        current && setState({ status: 'missing', error: toKinoraError(thrown).toRecord() }),
    );
    return () => {
      current = false;
    };
  }, [name]);
  return state;
}
