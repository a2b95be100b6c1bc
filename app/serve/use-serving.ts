import { useSyncExternalStore } from 'react';
import { getServing, notServing, type ServingState } from './serving-store';

const subscribe = (listener: () => void) => getServing().subscribe(listener);
const getSnapshot = () => getServing().getSnapshot();
const getServerSnapshot = () => notServing;

/** What the serving of this page is doing. */
export function useServing(): ServingState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
