import type { RecognisedFile } from '../../../pipeline/installation';
import { type Checkpoint, checkpointOf, type TensorFile } from '../../../weights';
import type { ComponentTensors } from '../../naming/canonicalise';
import { recogniseBy } from '../../naming/kinds';
import { locateAs, wanKinds } from '../../wan/naming';
import type { ModelConfig } from '../config';
import { architectureOf, type WeightComponent } from './expected';

const kinds = wanKinds({
  transformer: ({ width, inputs }) =>
    width !== 5120 &&
    width !== 1536 &&
    inputs !== 36 &&
    (width !== 3072 || !Number.isInteger(inputs) || inputs === 48),
  latentChannels: 48,
});

/** Recognises a weight file by its tensors, whatever it is called. */
export function recognise(file: TensorFile): RecognisedFile {
  return recogniseBy(kinds, [file]);
}

/**
 * The tensors of a component by diffusers' names, checked against the architecture.
 *
 * @param files one file, or the shards of one; only their headers are used
 * @throws KinoraError as {@link locateAs} does
 */
export function locateComponent(
  component: WeightComponent,
  files: readonly TensorFile[],
  config: ModelConfig,
): ComponentTensors {
  const architecture = architectureOf(component, config);
  return locateAs(component, architecture, kinds, files, 'a Wan2.2-TI2V model');
}

/** A component's files as a checkpoint. @throws KinoraError as {@link locateComponent} does */
export function openComponent(
  component: WeightComponent,
  files: readonly TensorFile[],
  config: ModelConfig,
): Checkpoint {
  const { name } = architectureOf(component, config);
  return checkpointOf(name, locateComponent(component, files, config));
}
