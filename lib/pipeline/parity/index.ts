import { z } from 'zod';
import type { Backend } from '../../gpu';
import type { ModelFolder } from '../../weights';
import { familyOf } from '../open';
import { failure, type ParityLine } from './compare';

export { compare, failure, type ParityLine } from './compare';

/** Options of a comparison with reference tensors. */
export interface ParityOptions {
  /** Replaces the tolerances of all stages with f32 weights. */
  readonly tolerance?: number;
  /** Names of the files in `loras/`: a folder behind HTTP cannot be listed. */
  readonly loraFiles?: readonly string[];
}

/** A part of the check. */
export interface ParityStage {
  readonly name: string;
  /** Where it fails without numbers, the tolerance that its line shows. */
  readonly tolerance: number;
  run(): AsyncGenerator<ParityLine>;
}

/** What has references: a model family, or another network that knows its own `golden.json`. */
export interface ParityFamily {
  /** The comparisons that a folder of reference tensors allows. */
  parityStages(
    goldens: ModelFolder,
    backend: Backend,
    options: ParityOptions,
  ): Promise<readonly ParityStage[]>;
  /** Whether the references are of this family, where `golden.json` names none. */
  readonly recognises?: (golden: unknown) => boolean;
}

export type ParityFamilies = Readonly<Record<string, ParityFamily>>;

const headSchema = z.looseObject({ family: z.string().optional() });

/**
 * Runs every stage for which a folder has references, and compares. `golden.json` may name the family.
 *
 * @throws KinoraError when the folder has no references or no model that can be read
 */
export async function runParity(
  families: ParityFamilies,
  folder: ModelFolder,
  backend: Backend,
  { onLine, ...options }: ParityOptions & { readonly onLine?: (line: ParityLine) => void } = {},
): Promise<ParityLine[]> {
  const lines: ParityLine[] = [];
  const push = (line: ParityLine) => {
    lines.push(line);
    onLine?.(line);
  };
  const golden = headSchema.parse(await folder.json('golden.json'));
  const recognised = Object.keys(families).find((name) => families[name]?.recognises?.(golden));
  const family = golden.family ?? recognised ?? 'unknown';
  const references = familyOf(families, { name: 'golden.json', family });
  for (const stage of await references.parityStages(folder, backend, options)) {
    try {
      for await (const line of stage.run()) push(line);
    } catch (error) {
      push(failure(stage.name, stage.tolerance, String(error)));
    }
    await backend.trim();
  }
  return lines;
}
