import { useSyncExternalStore } from 'react';
import { createEngineClient } from '../lib/predictions/engine-client';
import { idle, type RunState } from '../lib/predictions/run-state';
import { Runner } from '../lib/predictions/runner';
import { PredictionStore } from '../lib/predictions/store';
import { readImageFile } from '../lib/video/image';

let runner: Runner | null = null;

/** The runner of this page. Call it in event handlers and effects only: it does not exist on the server. */
export function getRunner(): Runner {
  runner ??= new Runner(
    new PredictionStore(),
    createEngineClient(
      () => new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' }),
    ),
    readImageFile,
  );
  return runner;
}

const subscribe = (listener: () => void) => getRunner().subscribe(listener);
const getSnapshot = () => getRunner().getSnapshot();
const getServerSnapshot = () => idle;

/** State of the generation of this tab. */
export function useRun(): RunState {
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
