import { Runner } from '../lib/predictions/runner';
import { PredictionStore } from '../lib/predictions/store';
import { readImageFile } from '../lib/video/image';
import { createPageEngine } from './engine-client';

let runner: Runner | null = null;

/** The one runner of this page. For handlers and effects: the server has none. */
export function getRunner(): Runner {
  runner ??= new Runner(new PredictionStore(), createPageEngine(), readImageFile);
  return runner;
}
