import type { Precision } from '../../contract';
import { CountingBackend, type DeviceBytes } from '../../gpu';
import type { Compute, KernelChoice } from '../../gpu/kernels';
import { withAliases } from '../../weights';
import { zeroCheckpoint } from '../layers/shape-checkpoint';
import { encodePrompts } from './text-encoder';
import type { TextEncoderConfig } from './text-encoder-config';
import { textEncoderAliases, textEncoderTensors } from './text-encoder-tensors';

/**
 * Counts what encoding prompts takes on a device. All layers are written into the buffers of the first, so that one of
 * them tells the peak.
 *
 * @param promptTokens tokens of each prompt
 * @param kernels kernels of our own that compute; null where the runtime does
 * @param compute the device that compiles them; one without limits when absent
 * @throws Refusal where they are to compute and do not
 */
export async function countTextEncoder(
  config: TextEncoderConfig,
  precision: Precision,
  promptTokens: readonly number[],
  kernels: KernelChoice | null,
  compute?: Compute | null,
): Promise<DeviceBytes> {
  const one = { ...config, num_layers: 1 };
  const zeros = zeroCheckpoint(textEncoderTensors(one), precision);
  const checkpoint = withAliases(zeros, textEncoderAliases);
  const backend = new CountingBackend(kernels, compute);
  const prompts = promptTokens.map((tokens) => new Array<number>(tokens).fill(0));
  await encodePrompts(backend, checkpoint, one, prompts, { precision });
  return backend.measured();
}
