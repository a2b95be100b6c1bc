import { afterEach, beforeEach } from 'vitest';
import { KinoraError } from '../../contract';
import { readImageFile } from '../../video/image';
import { KinoraDatabase } from '../database';
import { Runner } from '../runner';
import { PredictionStore } from '../store';
import { cleanUp } from './clean-up';
import { FakeEngine } from './engine';

/** Long enough for a slow machine. */
export const soon = { timeout: 30_000 };

/** What one tab has; each test its own. */
export let store: PredictionStore;
export let engine: FakeEngine;
export let runner: Runner;

/** A runner with adapters of the library, whose names it adds to `opened`. */
export function newRunner(
  ofStore: PredictionStore,
  ofEngine: FakeEngine,
  opened: string[] = [],
): Runner {
  return new Runner(ofStore, ofEngine, readImageFile, async (name) => {
    if (name === 'gone') throw new KinoraError('LORA_MISSING');
    opened.push(name);
    return { name, file: new Blob(['of the library']) };
  });
}

/** Gives each test of a file a database, an engine and a runner, and deletes what it has stored. */
export function withRunner(): void {
  beforeEach(() => {
    store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
    engine = new FakeEngine();
    runner = newRunner(store, engine);
  });
  afterEach(() => cleanUp(store.database));
}
