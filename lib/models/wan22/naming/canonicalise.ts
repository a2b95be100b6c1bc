import { KinoraError } from '../../../contract';
import { type LocatedTensor, locateTensors, type TensorFile } from '../../../weights';
import type { ModelConfig } from '../config';
import { textEncoderAliases } from '../tensors';
import { componentNames, expectedTensors, type WeightComponent } from './expected';
import {
  llamaCppTextEncoderName,
  originalTextEncoderName,
  originalTransformerName,
  originalVaeName,
} from './original';
import { checkKind } from './recognise';
import { restoredShape } from './shapes';

/** A way to name a component's tensors. */
interface Naming {
  readonly name: string;
  /** From diffusers' name to this one. */
  readonly rename: (name: string) => string;
}

const diffusers: Naming = { name: 'diffusers', rename: (name) => name };

function namingsOf(component: WeightComponent, config: ModelConfig): readonly Naming[] {
  switch (component) {
    case 'transformer':
      return [diffusers, { name: 'original', rename: originalTransformerName }];
    case 'text_encoder':
      return [
        diffusers,
        { name: 'original', rename: originalTextEncoderName },
        { name: 'llama.cpp', rename: llamaCppTextEncoderName },
      ];
    case 'vae':
      return [diffusers, { name: 'original', rename: (name) => originalVaeName(name, config.vae) }];
    case 'tiny_decoder':
      return [diffusers];
  }
}

/** What tools put before the names when they save a component as a part of something. */
const prefixes: Readonly<Record<WeightComponent, readonly string[]>> = {
  transformer: ['', 'model.diffusion_model.', 'diffusion_model.', 'model.', 'transformer.'],
  text_encoder: ['', 'model.', 'text_encoder.'],
  vae: ['', 'model.', 'vae.', 'first_stage_model.'],
  tiny_decoder: ['', 'model.'],
};

/** The tensors of a component by diffusers' names: those it should have, as far as they are there. */
export class ComponentTensors extends Map<string, LocatedTensor> {
  constructor(
    tensors: Iterable<readonly [string, LocatedTensor]>,
    /** Names of the files, for messages. */
    readonly label: string,
    /** How the files name their tensors: `diffusers`, `original`, `llama.cpp`. */
    readonly naming: string,
    /** The name that a tensor has, or should have, in the files. */
    readonly storedName: (name: string) => string,
    /** What else is there, by the files' names without the prefix. */
    readonly extras: ReadonlyMap<string, LocatedTensor>,
  ) {
    super(tensors);
  }
}

/**
 * Finds the tensors of a component in its files, whichever known names they have there, and gives them
 * diffusers' names. Which ones are missing or wrong is for {@link checkArchitecture} to say.
 *
 * @param files one file, or the shards of one; only their headers are used
 * @throws KinoraError `MODEL_WRONG_KIND` when the files are recognised as something else, or hold no
 * tensor of the component at all; `MODEL_FILE_INVALID` when two of them have the same tensor
 */
export function canonicalise(
  component: WeightComponent,
  files: readonly TensorFile[],
  config: ModelConfig,
): ComponentTensors {
  checkKind(component, files);
  const located = locateTensors(files);
  const label = files.map(({ file }) => file.name).join(', ');
  const { prefix, naming, names } = bestNaming(component, config, located);

  const tensors = new Map<string, LocatedTensor>();
  const extras = new Map(located);
  const shapes = expectedTensors(
    component,
    config,
    (name) => located.get(prefix + naming.rename(name))?.entry.shape,
  );
  for (const [name, shape] of shapes) {
    const storedName = names.get(name) ?? prefix + naming.rename(name);
    const found = located.get(storedName);
    if (!found) continue;
    extras.delete(storedName);
    const restored = isGguf(files, found) ? restoredShape(found.entry.shape, shape) : null;
    tensors.set(name, restored ? { ...found, entry: { ...found.entry, shape: restored } } : found);
  }
  if (tensors.size === 0) {
    const [first = 'nothing'] = located.keys();
    throw new KinoraError(
      'MODEL_WRONG_KIND',
      `${label} has no tensor of the ${componentNames[component]}; its first one is ${first}.`,
    );
  }
  const bare = (name: string) => (name.startsWith(prefix) ? name.slice(prefix.length) : name);
  return new ComponentTensors(
    tensors,
    label,
    naming.name,
    (name) => prefix + naming.rename(name),
    new Map([...extras].map(([name, tensor]) => [bare(name), tensor])),
  );
}

/** The prefix and naming that find most of the tensors. They are never mixed: names overlap. */
function bestNaming(
  component: WeightComponent,
  config: ModelConfig,
  located: ReadonlyMap<string, LocatedTensor>,
) {
  let best = { prefix: '', naming: diffusers, names: new Map<string, string>() };
  for (const naming of namingsOf(component, config)) {
    for (const prefix of prefixes[component]) {
      const stored = (name: string) => prefix + naming.rename(name);
      const shapes = expectedTensors(
        component,
        config,
        (name) => located.get(stored(name))?.entry.shape,
      );
      const names = new Map<string, string>();
      for (const name of shapes.keys()) {
        const alias = textEncoderAliases.get(name);
        const candidates = alias === undefined ? [name] : [name, alias];
        const found = candidates.map(stored).find((candidate) => located.has(candidate));
        if (found !== undefined) names.set(name, found);
      }
      if (names.size > best.names.size) best = { prefix, naming, names };
    }
  }
  return best;
}

function isGguf(files: readonly TensorFile[], { file }: LocatedTensor): boolean {
  return files.some((one) => one.file === file && one.format === 'gguf');
}
