import { type KernelSetting, KinoraError } from '../../contract';
import type { Backend } from '../backend';
import { probeDevice } from '../device';
import { OwnKernels } from './own';
import { defaultChoice, modesOf } from './variants';

/**
 * Lets a backend compute with kernels of our own that were not measured on it: the best guess, and on an emulated
 * GPU the smallest tiles, which compile in a second instead of many.
 *
 * @throws KinoraError `PARAMETER_INVALID` for a mode that the device has no kernels for
 */
export async function assignKernels(backend: Backend, setting: KernelSetting): Promise<void> {
  backend.kernels = null;
  if (setting === 'runtime') return;
  const { compute } = backend;
  const mode = compute && modesOf(compute).find((each) => each === setting);
  if (!compute || !mode) {
    throw new KinoraError(
      'PARAMETER_INVALID',
      `There are no kernels for the mode ${setting} here.`,
      {
        remedy: 'Use --kernels exact on a GPU, or --kernels runtime.',
      },
    );
  }
  const { software } = await probeDevice();
  const choice = defaultChoice(compute, mode, software);
  backend.kernels = new OwnKernels(backend, choice);
}
