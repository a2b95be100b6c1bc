import type { Backend } from '../../../gpu';
import type { Golden, ParityContext } from '../parity/golden';

/** The context of parity stages with the usual tolerances, without LoRA files. */
export function parityContext(golden: Golden, backend: Backend): ParityContext {
  return {
    golden,
    backend,
    precision: 'f32',
    stageTolerance: 1e-4,
    loopTolerance: 1e-3,
    keyFrameTolerance: 1e-5,
    formatsVideoTolerance: 2e-3,
    loraFiles: [],
  };
}
