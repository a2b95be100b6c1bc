import { type ComponentType, lazy, Suspense } from 'react';

/** A component whose script is loaded when it is shown first; until then there is nothing in its place. */
export function later<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const Loaded = lazy<ComponentType<P>>(async () => ({ default: await load() }));
  return (props) => (
    <Suspense>
      <Loaded {...props} />
    </Suspense>
  );
}
