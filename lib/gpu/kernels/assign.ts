import { type KernelSetting, KinoraError } from '../../contract';
import type { Backend } from '../backend';
import { probeDevice } from '../device';
import type { Compute } from './compute';
import type { KernelMode } from './kernel';
import { defaultChoice, modesOf } from './variants';

/** What computes where a mode is asked for: `exact` on a device that has no kernels of that mode. */
export function modeFor(compute: Compute, asked: KernelMode): KernelMode {
  return modesOf(compute).find((mode) => mode === asked) ?? 'exact';
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
  const mode = modeFor(compute, setting);
  const { software } = await probeDevice();
  backend.kernels = defaultChoice(compute, mode, software);
  return mode;
}
