/** @module-tag full */

import { afterAll, beforeAll } from 'vitest';
import { type Backend, createBackend } from '../../gpu';
import { type Checkpoint, httpFolder } from '../../weights';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import type { TransformerConfig } from './config-schemas';
import { readModelConfig } from './model-config';
import { streamingTests } from './testing/streaming';

let backend: Backend;
let checkpoint: Checkpoint;
let config: TransformerConfig;
beforeAll(async () => {
  const folder = httpFolder(
    new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href),
  );
  backend = await createBackend('webgpu');
  checkpoint = await openCheckpoint(folder, 'transformer');
  config = (await readModelConfig(folder)).transformer;
});
afterAll(() => backend.dispose());

streamingTests('webgpu', {
  backend: () => backend,
  checkpoint: () => checkpoint,
  config: () => config,
  slow: true,
});
