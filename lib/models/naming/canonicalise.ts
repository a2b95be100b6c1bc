import { KinoraError } from '../../contract';
import { elementType, type LocatedTensor, locateTensors, type TensorFile } from '../../weights';
import { type ComponentArchitecture, diffusersNaming } from './component';

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
    /** Other tensors, by the files' names without the prefix. */
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

/**
 * The wanted shape where a file has the same elements in fewer dimensions: GGML drops leading dimensions
 * of one (`[1,6,3072]` becomes `[6,3072]`), and has four at most, so that some converters join neighbours
 * of a five-dimensional kernel; others keep the patch embedding as a linear layer. The order of the
 * elements is the same.
 *
 * @returns null where the file's shape stands as it is
 */
function restoredShape(
  stored: readonly number[],
  expected: readonly number[],
): readonly number[] | null {
  if (same(stored, expected)) return null;
  if (same(withoutOnes(stored), withoutOnes(expected))) return expected;
  const joined = expected.length > 4 && stored.length <= 4 && isJoined(stored, expected);
  return joined ? expected : null;
}

const withoutOnes = (shape: readonly number[]) => shape.filter((n) => n !== 1);

/** Whether `stored` is `expected` with some neighbouring dimensions multiplied. */
function isJoined(stored: readonly number[], expected: readonly number[]): boolean {
  let axis = 0;
  for (const size of stored) {
    let product = 1;
    while (product < size && axis < expected.length) product *= expected[axis++] ?? 1;
    if (product !== size) return false;
  }
  return expected.slice(axis).every((n) => n === 1);
}

/** Whether two shapes are equal. */
function same(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((n, axis) => n === b[axis]);
}

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
