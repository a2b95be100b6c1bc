import { useLayoutEffect, useRef, useState } from 'react';

type Functions = Readonly<Record<string, (...args: never[]) => void>>;

/**
 * Event handlers for components that are rendered again only when their properties change: the same object
 * in each render, whose functions call the latest ones.
 *
 * @param functions always with the same names
 */
export function useStable<T extends Functions>(functions: T): T {
  const latest = useRef(functions);
  useLayoutEffect(() => {
    latest.current = functions;
  });
  const [stable] = useState(() => {
    const names = Object.keys(functions);
    const callLatest = (name: string) => [
      name,
      (...args: never[]) => latest.current[name]?.(...args),
    ];
    return Object.fromEntries(names.map(callLatest)) as T;
  });
  return stable;
}
