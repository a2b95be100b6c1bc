/** @module-tag full */
import { afterAll } from 'vitest';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import { readModelConfig } from './model-config';
import { nodeBackend, tinyFolder } from './testing/model';
import { streamingTests } from './testing/streaming';

const backend = nodeBackend();
// The plan is that of the runtime, and its runs are counted; the kernels of the CPU take a memory of their own.
backend.runtimeOnly = true;
const checkpoint = await openCheckpoint(tinyFolder, 'transformer');
const { transformer } = await readModelConfig(tinyFolder);
afterAll(() => backend.dispose());

streamingTests('wasm', {
  backend: () => backend,
  checkpoint: () => checkpoint,
  config: () => transformer,
});
