/** The tiny model and the CPU backend, for tests that run in Node. */
import * as ort from 'onnxruntime-web';
import type { ModelManifest } from '../../../contract';
import { testManifest } from '../../../contract/testing/manifest';
import { type Backend, type Runtime, WasmBackend } from '../../../gpu';
import type { ModelFolder } from '../../../weights';
import { diskFolder, goldens, publicModels } from '../../../weights/testing/files';
import { openParts, type Wan22Parts } from '../parts';

/** The model folder of the goldens. */
export const tinyFolder = diskFolder(`${goldens}model`);

/** Config files of the real 5B, as they are served. */
export const realFolder = diskFolder(`${publicModels}wan2.2-ti2v-5b`);

/** The CPU backend on ONNX Runtime's build for Node. */
export function nodeBackend(): Backend {
  return new WasmBackend(() => ort as unknown as Runtime);
}

/** A manifest of the tiny model at 64×32, with some fields of one's own. */
export function tinyManifest(fields: Partial<ModelManifest> = {}): ModelManifest {
  return testManifest({ id: 'tiny', name: 'Tiny', base: 'tiny/', ...fields });
}

/** Opens the tiny model, from another folder where one is given. */
export function openTiny(
  fields: Partial<ModelManifest> = {},
  folder: ModelFolder = tinyFolder,
): Promise<Wan22Parts> {
  return openParts(tinyManifest(fields), folder);
}
