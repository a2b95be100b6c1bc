import { KinoraError } from '../../../contract';
import { type Checkpoint, checkpointOf, type TensorFile } from '../../../weights';
import { checkArchitecture } from '../../naming/architecture';
import { type ComponentTensors, canonicalise } from '../../naming/canonicalise';
import { type FileKind, recogniseBy } from '../../naming/kinds';
import type { ModelConfig } from '../config';
import { architectureOf, type WeightComponent } from './expected';
import { kinds } from './kinds';

/** Recognises a weight file by its tensors, whatever it is called. */
export function recognise(file: TensorFile): FileKind {
  return recogniseBy(kinds, [file]);
}

/**
 * The tensors of a component by diffusers' names, checked against the architecture.
 *
 * @param files one file, or the shards of one; only their headers are used
 * @throws KinoraError `MODEL_WRONG_KIND` when the files are recognised as something else, and as
 * {@link canonicalise} and {@link checkArchitecture} do
 */
export function locateComponent(
  component: WeightComponent,
  files: readonly TensorFile[],
  config: ModelConfig,
): ComponentTensors {
  const architecture = architectureOf(component, config);
  checkKind(component, architecture.name, files);
  const located = canonicalise(architecture, files);
  checkArchitecture(architecture, located);
  return located;
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

/** Refuses files that are recognised as something else. What is not recognised passes. */
function checkKind(component: WeightComponent, wanted: string, files: readonly TensorFile[]): void {
  const { name, component: found } = recogniseBy(kinds, files);
  if (name === '' || found === component) return;
  const label = files.map(({ file }) => file.name).join(', ');
  throw new KinoraError(
    'MODEL_WRONG_KIND',
    `${label} is ${name}, but the ${wanted} of a Wan2.2-TI2V model is wanted.`,
  );
}
