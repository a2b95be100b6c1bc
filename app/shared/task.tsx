import { useEffect, useMemo, useRef, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../lib/contract';
import { ProblemAlert } from './messages';

/** What a part of a page does, one thing at a time. */
export interface Task {
  readonly busy: boolean;
  /** How much is done, from 0 to 1; null where nothing runs. */
  readonly share: number | null;
  /** Why the last one failed; null where a person has stopped it. */
  readonly problem: ErrorRecord | null;
  /** Starts work, and ends what ran before it. Its signal also aborts when the part is gone. */
  readonly run: (
    work: (signal: AbortSignal, onShare: (share: number) => void) => Promise<unknown>,
  ) => void;
  /** Aborts the signal of what runs. */
  readonly stop: () => void;
}

const idle = { share: null, problem: null };

export function useTask(): Task {
  const [state, setState] = useState<Pick<Task, 'share' | 'problem'>>(idle);
  const running = useRef<AbortController>(null);
  const actions = useMemo<Pick<Task, 'run' | 'stop'>>(() => {
    const run: Task['run'] = (work) => {
      running.current?.abort();
      const control = new AbortController();
      const { signal } = control;
      running.current = control;
      const set = (next: typeof state) => {
        if (running.current === control) setState(next);
      };
      set({ share: 0, problem: null });
      work(signal, (share) => set({ share, problem: null })).then(
        () => set(idle),
        (thrown: unknown) => {
          const error = toKinoraError(thrown).toRecord();
          const isStopped = signal.aborted || error.code === 'CANCELLED';
          set({ share: null, problem: isStopped ? null : error });
        },
      );
    };
    return { run, stop: () => running.current?.abort() };
  }, []);
  useEffect(
    () => () => {
      running.current?.abort();
      running.current = null;
    },
    [],
  );
  return { ...state, busy: state.share !== null, ...actions };
}

/** The error or the progress of what a dialog does: without a number where no share is reported. */
export function TaskStatus({ task, name }: { task: Task; name: string }) {
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
