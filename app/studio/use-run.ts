import { useSyncExternalStore } from 'react';
import { idle, type RunState } from '../../lib/predictions/run-state';
import { getRunner } from '../runner';

const subscribe = (listener: () => void) => getRunner().subscribe(listener);
const getSnapshot = () => getRunner().getSnapshot();
const getServerSnapshot = () => idle;

/** What the generation of this tab is doing. */
export function useRun(): RunState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
