import { KinoraError } from '../../contract';
import { type LocatedTensor, locateTensors, type TensorFile } from '../../weights';
import { type ComponentArchitecture, diffusersNaming } from './component';
import { restoredShape } from './shapes';

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
 * @throws KinoraError `MODEL_WRONG_KIND` when the files hold no tensor of the component at all;
 * `MODEL_FILE_INVALID` when two of them have the same tensor
 */
export function canonicalise(
  component: ComponentArchitecture,
  files: readonly TensorFile[],
): ComponentTensors {
  const located = locateTensors(files);
  const label = files.map(({ file }) => file.name).join(', ');
  const { prefix, naming, names } = bestNaming(component, located);
  const stored = (name: string) => prefix + naming.rename(name);

  const tensors = new Map<string, LocatedTensor>();
  const extras = new Map(located);
  for (const [name, shape] of component.tensors((own) => located.get(stored(own))?.entry.shape)) {
    const storedName = names.get(name) ?? stored(name);
    const match = located.get(storedName);
    if (!match) continue;
    extras.delete(storedName);
    const rows = match.entry.shape[0] === shape[0];
    // A scale of each row counts the rows of the file.
    const restored = rows || !match.scale ? restoredShape(match.entry.shape, shape) : null;
    tensors.set(name, restored ? { ...match, entry: { ...match.entry, shape: restored } } : match);
  }
  if (tensors.size === 0) {
    const [first = 'nothing'] = located.keys();
    throw new KinoraError(
      'MODEL_WRONG_KIND',
      `${label} has no tensor of the ${component.name}; its first one is ${first}.`,
    );
  }
  const bare = (name: string) => (name.startsWith(prefix) ? name.slice(prefix.length) : name);
  return new ComponentTensors(
    tensors,
    label,
    naming.name,
    stored,
    new Map([...extras].map(([name, tensor]) => [bare(name), tensor])),
  );
}

/** The prefix and naming that find most of the tensors. They are never mixed: names overlap. */
function bestNaming(
  { namings, prefixes, tensors, aliases }: ComponentArchitecture,
  located: ReadonlyMap<string, LocatedTensor>,
) {
  let best = { prefix: '', naming: diffusersNaming, names: new Map<string, string>() };
  for (const naming of namings) {
    for (const prefix of prefixes) {
      const stored = (name: string) => prefix + naming.rename(name);
      const names = new Map<string, string>();
      for (const name of tensors((own) => located.get(stored(own))?.entry.shape).keys()) {
        const alias = aliases?.get(name);
        const candidates = alias === undefined ? [name] : [name, alias];
        const storedName = candidates.map(stored).find((candidate) => located.has(candidate));
        if (storedName !== undefined) names.set(name, storedName);
      }
      if (names.size > best.names.size) best = { prefix, naming, names };
    }
  }
  return best;
}
