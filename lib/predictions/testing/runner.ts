import { afterEach, beforeEach } from 'vitest';
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

/** Gives each test of a file a database, an engine and a runner, and deletes what it has stored. */
export function withRunner(): void {
  beforeEach(() => {
    store = new PredictionStore(new KinoraDatabase(`test-${crypto.randomUUID()}`));
    engine = new FakeEngine();
    runner = new Runner(store, engine, readImageFile);
  });
  afterEach(() => cleanUp(store.database));
}
