import { type ComponentId, KinoraError } from '../../../contract';
import type { TensorFile } from '../../../weights';
import { contentsOf } from './contents';
import { componentNames, type WeightComponent } from './expected';
import { kinds } from './kinds';

/** What a weight file is, as far as its header tells. */
export interface FileKind {
  /** With its article: "a LoRA", "the VAE of Wan2.1". Empty where nothing is known of it. */
  readonly name: string;
  /** Which part of our model it may be; its sizes are still to be checked. */
  readonly component: ComponentId | null;
}

/** Recognises a weight file by its tensors, whatever it is called. */
export function recognise(file: TensorFile): FileKind {
  return recogniseAll([file]);
}

function recogniseAll(files: readonly TensorFile[]): FileKind {
  const contents = contentsOf(files);
  for (const kind of kinds) {
    const found = kind(contents);
    if (found) return found;
  }
  return { name: '', component: null };
}

/**
 * Refuses files that are recognised as something else than the wanted component. What is not
 * recognised passes: the architecture check looks closer.
 *
 * @throws KinoraError `MODEL_WRONG_KIND` naming what the file is and what was wanted
 */
export function checkKind(component: WeightComponent, files: readonly TensorFile[]): void {
  const { name, component: found } = recogniseAll(files);
  if (name === '' || found === component) return;
  const label = files.map(({ file }) => file.name).join(', ');
  throw new KinoraError(
    'MODEL_WRONG_KIND',
    `${label} is ${name}, but the ${componentNames[component]} of a Wan2.2-TI2V model is wanted.`,
  );
}
