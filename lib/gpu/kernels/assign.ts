import { type KernelSetting, KinoraError } from '../../contract';
import type { Backend } from '../backend';
import { probeDevice } from '../device';
import { attentionVariants } from './attention';
import type { KernelChoice } from './choice';
import { linearVariants } from './linear';
import { OwnKernels } from './own';

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
  if (!compute || setting !== 'exact') {
    throw new KinoraError(
      'PARAMETER_INVALID',
      `There are no kernels for the mode ${setting} here.`,
      {
        remedy: 'Use --kernels exact on a GPU, or --kernels runtime.',
      },
    );
  }
  const first = (await probeDevice()).software ? -1 : 0;
  const choice: KernelChoice = {
    mode: 'exact',
    linear: linearVariants(compute).at(first) ?? null,
    attention: attentionVariants(compute).at(first) ?? null,
    convolution: null,
  };
  backend.kernels = new OwnKernels(backend, choice);
}
