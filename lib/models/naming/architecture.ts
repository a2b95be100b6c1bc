import { KinoraError } from '../../contract';
import { elementType } from '../../weights';
import type { ComponentTensors } from './canonicalise';
import type { ComponentArchitecture } from './component';
import { same } from './shapes';

/**
 * Tensors that files carry without a meaning for the result: markers and calibration of fp8 files, the
 * tokenizer as a tensor, tied copies of the embedding, tables that are computed.
 */
const harmless: readonly RegExp[] = [
  /^scaled_fp8$/,
  /\.(scale_input|input_scale|comfy_quant)$/,
  /^(spiece_model|tekken_model)$/,
  /^((encoder|decoder)\.)?embed_tokens\.weight$/,
  /^(lm_head|output)\.weight$/,
  /^(freqs|rope\.freqs(_cos|_sin)?)$/,
];

/**
 * Checks every tensor of a component against the architecture, from the headers alone: none is missing,
 * none has another shape, and none is there that the architecture does not know but would have to.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`, `TENSOR_EXTRA`, and `TENSOR_DTYPE` for a type that
 * cannot be read, each naming the tensor as the file does
 */
export function checkArchitecture(
  component: ComponentArchitecture,
  located: ComponentTensors,
): void {
  const { name } = component;
  for (const [tensor, shape] of component.tensors((own) => located.get(own)?.entry.shape)) {
    const match = located.get(tensor);
    if (!match) {
      throw new KinoraError(
        'TENSOR_MISSING',
        `${located.label} lacks the tensor ${located.storedName(tensor)} [${shape}] of the ${name}.`,
      );
    }
    if (!same(match.entry.shape, shape)) {
      throw new KinoraError(
        'TENSOR_SHAPE',
        `${match.storedName} of the ${name} is [${match.entry.shape}], ` +
          `but its configuration needs [${shape}].`,
      );
    }
    elementType(match.entry.dtype, match.storedName);
    if (match.scale) elementType(match.scale.entry.dtype, `the scale of ${match.storedName}`);
  }
  const known = [...harmless, ...(component.harmless ?? [])];
  for (const [extra, { storedName }] of located.extras) {
    if (known.some((pattern) => pattern.test(extra))) continue;
    throw new KinoraError(
      'TENSOR_EXTRA',
      `${located.label} has the tensor ${storedName}, which the ${name} by its configuration has not.`,
    );
  }
}
