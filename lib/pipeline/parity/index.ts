import { z } from 'zod';
import { defaultFamily } from '../../contract';
import type { Backend } from '../../gpu';
import type { ModelFolder } from '../../weights';
import type { ModelFamilies } from '../model';
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

const headSchema = z.looseObject({ family: z.string().default(defaultFamily) });

/**
 * Runs every stage for which a folder has references, and compares. `golden.json` may name the model family.
 *
 * @throws KinoraError when the folder has no references or no model that can be read
 */
export async function runParity(
  families: ModelFamilies,
  folder: ModelFolder,
  backend: Backend,
  { onLine, ...options }: ParityOptions & { readonly onLine?: (line: ParityLine) => void } = {},
): Promise<ParityLine[]> {
  const lines: ParityLine[] = [];
  const push = (line: ParityLine) => {
    lines.push(line);
    onLine?.(line);
  };
  const { family } = headSchema.parse(await folder.json('golden.json'));
  const model = familyOf(families, { name: 'golden.json', family });
  for (const stage of await model.parityStages(folder, backend, options)) {
    try {
      for await (const line of stage.run()) push(line);
    } catch (error) {
      push(failure(stage.name, stage.tolerance, String(error)));
    }
    await backend.trim();
  }
  return lines;
}
