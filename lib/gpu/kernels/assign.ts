import { type KernelSetting, KinoraError } from '../../contract';
import type { Backend } from '../backend';
import { probeDevice } from '../device';
import type { Compute } from './compute';
import { defaultChoice, modesOf } from './families';
import type { KernelMode } from './kernel';
import { measurePeak, quickPeak } from './peak';

/**
 * What computes where a mode is asked for: `exact` on a device that has no kernels of that mode, or on which they are
 * slower. Before `fast` a GPU's peak is measured, unless it is known.
 *
 * @param software an emulated GPU computes in every mode that it has kernels of, as nobody uses it for its speed
 */
export async function modeFor(
  backend: Backend,
  compute: Compute,
  requested: KernelMode,
  software: boolean,
): Promise<KernelMode> {
  if (requested === 'fast' && !software) {
    compute.peak ??= await measurePeak(backend, compute, quickPeak);
  }
  return modesOf(compute).find((mode) => mode === requested) ?? 'exact';
}

/**
 * Lets a backend compute with kernels of our own that were not measured on it: the best guess, and on an emulated
 * GPU the smallest tiles, which compile in a second instead of many.
 *
 * @returns what computes, see {@link modeFor}
 * @throws KinoraError `PARAMETER_INVALID` for a mode on a backend that runs no kernels of our own
 */
export async function assignKernels(
  backend: Backend,
  setting: KernelSetting,
): Promise<KernelSetting> {
  backend.kernels = null;
  if (setting === 'runtime') return setting;
  const { compute } = backend;
  if (!compute) {
    throw new KinoraError('PARAMETER_INVALID', `The CPU has no kernels for the mode ${setting}.`, {
      remedy: 'Use --backend webgpu, or --kernels runtime.',
    });
  }
  const { software } = await probeDevice();
  const mode = await modeFor(backend, compute, setting, software);
  backend.kernels = defaultChoice(compute, mode, software);
  return mode;
}
