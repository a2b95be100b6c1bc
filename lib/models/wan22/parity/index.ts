import type { Backend } from '../../../gpu';
import type { KernelMode } from '../../../gpu/kernels';
import type { ParityOptions, ParityStage } from '../../../pipeline/parity';
import type { ModelFolder } from '../../../weights';
import { openGolden } from './golden';
import { stages } from './stages';

/** By the mode of the kernels: for every stage, the loop and the video. */
const kernelTolerances: Readonly<Record<KernelMode, number>> = {
  exact: 3e-3,
  fast: 5e-2,
  matrix: 5e-3,
};

/**
 * The stages for which a folder laid out like the goldens has a reference. Tolerances: 1e-4 for a stage
 * alone, 1e-5 with key frames, 1e-3 for the loop and the video, 2e-3 for the video from public files, 5e-2 with weights that
 * are quantised to 8 bits. Kernels of our own that store f16 have {@link kernelTolerances}. Fast linear layers are
 * for weights in blocks only, so that in this mode the blocks' weights have 8 bits in all stages.
 *
 * @throws KinoraError when the folder has no goldens or no model that can be read
 */
export async function wan22ParityStages(
  folder: ModelFolder,
  backend: Backend,
  options: ParityOptions,
): Promise<ParityStage[]> {
  const golden = await openGolden(folder);
  const { mode, storage } = backend.kernels ?? { storage: 'f32' };
  const own = mode && storage !== 'f32' ? kernelTolerances[mode] : undefined;
  const context = {
    golden,
    backend,
    precision: mode === 'fast' ? ('int8' as const) : ('f32' as const),
    stageTolerance: options.tolerance ?? own ?? 1e-4,
    loopTolerance: options.tolerance ?? own ?? 1e-3,
    keyFrameTolerance: options.tolerance ?? own ?? 1e-5,
    formatsVideoTolerance: options.tolerance ?? own ?? 2e-3,
    loraFiles: options.loraFiles ?? [],
  };
  const names = [...golden.tensors.names()];
  return stages
    .filter(({ checks }) => checks.some((pattern) => names.some((name) => pattern.test(name))))
    .map(({ name, run }) => ({
      name,
      tolerance: context.stageTolerance,
      run: () => run(context),
    }));
}
