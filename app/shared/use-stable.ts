import { useLayoutEffect, useMemo, useRef, useState } from 'react';

type Functions = Record<string, (...args: unknown[]) => unknown>;

/**
 * The same functions for as long as the component lives, each of which calls the one that was given last:
 * what is memoised does not render again for a new closure. Call them in handlers and effects.
 */
export function useStable<T extends object>(functions: T): T {
  const latest = useRef(functions as Functions);
  useLayoutEffect(() => {
    latest.current = functions as Functions;
  });
  const [stable] = useState(() =>
    Object.fromEntries(
      Object.keys(functions).map((name) => [
        name,
        (...args: unknown[]) => latest.current[name]?.(...args),
      ]),
    ),
  );
  return stable as T;
}

/** The same object for as long as none of its values changes: what reads it as a context does not render again without need. */
export function useSteady<T extends object>(record: T): T {
  // biome-ignore lint/correctness/useExhaustiveDependencies: its values are what it depends on
  return useMemo(() => record, Object.values(record));
}
