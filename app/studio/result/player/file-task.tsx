import { useCallback, useEffect, useRef, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../../../lib/contract';
import { ProblemAlert } from '../../../shared/messages';

/** What a dialog does with a file, one thing at a time. */
export interface FileTask {
  /** How much is done, from 0 to 1; null where nothing runs. */
  readonly share: number | null;
  /** Why the last one failed. */
  readonly problem: ErrorRecord | null;
  /** Starts work, and ends what ran before it. Its signal aborts when the dialog is closed. */
  readonly run: (
    work: (signal: AbortSignal, onShare: (share: number) => void) => Promise<void>,
  ) => void;
}

const idle = { share: null, problem: null };

export function useFileTask(): FileTask {
  const [state, setState] = useState<Omit<FileTask, 'run'>>(idle);
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);
  const run: FileTask['run'] = useCallback((work) => {
    running.current?.abort();
    const control = new AbortController();
    const { signal } = control;
    running.current = control;
    const set = (next: typeof state) => {
      if (!signal.aborted) setState(next);
    };
    set({ share: 0, problem: null });
    work(signal, (share) => set({ share, problem: null })).then(
      () => set(idle),
      (thrown: unknown) => set({ share: null, problem: toKinoraError(thrown).toRecord() }),
    );
  }, []);
  return { ...state, run };
}

/** The error or the progress of what a dialog does: without a number where no share is reported. */
export function TaskStatus({ task, name }: { task: FileTask; name: string }) {
  return (
    <>
      <ProblemAlert error={task.problem} />
      {task.share !== null && (
        <label>
          {name}
          <progress value={task.share || undefined} max={1} />
        </label>
      )}
    </>
  );
}
