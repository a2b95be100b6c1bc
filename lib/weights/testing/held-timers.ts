/** Timers of one length, in the hands of a test. */
export interface HeldTimers {
  /** Those that run now, the oldest first. */
  readonly running: readonly unknown[];
  /** Ends those that run now, as if their time were over. */
  end(): void;
  /** Leaves later timers alone. */
  release(): void;
}

/**
 * Takes hold of the timers of one length, such as a limit for an answer that brings nothing. It is a long
 * limit, so that no answer of a slow machine is taken for a lost one; and the test need not wait for it.
 *
 * @param ms their length in milliseconds; no other timer should have it
 */
export function holdTimers(ms: number): HeldTimers {
  const running = new Map<unknown, () => void>();
  const { setTimeout: start, clearTimeout: clear } = globalThis;
  const held = (call: () => void, delay?: number, ...rest: unknown[]) => {
    if (delay !== ms) return start(call, delay, ...rest);
    const timer = start(() => {
      running.delete(timer);
      call();
    }, ms);
    running.set(timer, call);
    return timer;
  };
  const stop = (timer: ReturnType<typeof setTimeout> | undefined) => {
    running.delete(timer);
    clear(timer);
  };
  const swap = (timers: object) => void Object.assign(globalThis, timers);
  swap({ setTimeout: Object.assign(held, start), clearTimeout: stop });
  return {
    get running() {
      return [...running.keys()];
    },
    end() {
      for (const [timer, call] of [...running]) {
        running.delete(timer);
        clear(timer as ReturnType<typeof setTimeout>);
        call();
      }
    },
    release: () => swap({ setTimeout: start, clearTimeout: clear }),
  };
}
