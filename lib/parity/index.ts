import { z } from 'zod';
import { type Backend, relativeRms } from '../gpu';
import { familyOf } from '../pipeline/open';
import type { ModelFolder } from '../weights';
import { type Golden, openFile, type Result, type Tolerance } from './golden';
import { networks } from './stages';

/** Options of a comparison with reference tensors. */
export interface ParityOptions extends Partial<Pick<Golden, 'loraFiles' | 'quickChecker'>> {
  /** Replaces the tolerances of all stages with f32 weights. */
  readonly tolerance?: number;
  /** Names of the stages that run; all when absent. */
  readonly only?: readonly string[];
  readonly onLine?: (line: ParityLine) => void;
}

/** One row of the parity table. */
export interface ParityLine {
  readonly stage: string;
  /** ‖a − b‖ / ‖b‖; NaN never passes. */
  readonly relativeRms: number;
  readonly maxAbsolute: number;
  readonly tolerance: number;
  readonly ok: boolean;
  /** What went wrong where there are no numbers to compare. */
  readonly note?: string;
}

const fieldsSchema = z.looseObject({ family: z.string().optional() });

/**
 * Runs every stage for which a folder has references, and compares. `golden.json` may name the family.
 *
 * @throws KinoraError when the folder has no references or no model that can be read
 */
export async function runParity(
  folder: ModelFolder,
  backend: Backend,
  { tolerance: asked, only, onLine, loraFiles = [], quickChecker }: ParityOptions = {},
): Promise<ParityLine[]> {
  const fields = fieldsSchema.parse(await folder.json('golden.json'));
  const recognised = Object.entries(networks).find(([, of]) => of.fields.some((f) => f in fields));
  const family = fields.family ?? recognised?.[0] ?? 'unknown';
  const network = familyOf(networks, { name: 'golden.json', family });
  const tensors = await openFile(folder, 'golden.safetensors');
  const golden: Golden = { folder, tensors, backend, loraFiles, quickChecker };
  const lines: ParityLine[] = [];
  const push = (line: ParityLine) => {
    lines.push(line);
    onLine?.(line);
  };
  for (const stage of await network.stages(golden)) {
    if (only && !only.includes(stage.name)) continue;
    const tolerance = toleranceOn(backend, stage.tolerance, asked);
    try {
      for await (const result of stage.run()) {
        const line = await compared(golden, result, tolerance);
        if (line) push(line);
      }
    } catch (error) {
      push(failure(stage.name, String(error), tolerance));
    }
    await backend.trim();
  }
  return lines;
}

function toleranceOn({ kernels }: Backend, tolerance: Tolerance, asked?: number): number {
  if ('always' in tolerance) return tolerance.always;
  const { f32, f16 } = tolerance;
  return asked ?? (kernels && kernels.storage !== 'f32' ? f16?.[kernels.mode] : undefined) ?? f32;
}

async function compared({ tensors }: Golden, result: Result, tolerance: number) {
  if (result.length === 2) return failure(...result, tolerance);
  const [line, actual, expected] = result;
  if (typeof expected !== 'string') return compare(line, actual, expected, tolerance);
  if (!tensors.has(expected)) return null;
  return compare(line, actual, await tensors.read(expected), tolerance);
}

/** Compares two tensors element by element. */
export function compare(
  stage: string,
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
): ParityLine {
  if (actual.length !== expected.length) {
    return failure(stage, `${actual.length} elements, expected ${expected.length}`, tolerance);
  }
  let maxAbsolute = 0;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs((actual[i] ?? Number.NaN) - (expected[i] ?? Number.NaN));
    maxAbsolute = Math.max(maxAbsolute, difference); // NaN sticks
  }
  // Equal zeros are equal; no elements at all are not.
  const isEqual = maxAbsolute === 0 && expected.length > 0;
  const error = isEqual ? 0 : relativeRms(actual, expected);
  return { stage, relativeRms: error, maxAbsolute, tolerance, ok: error <= tolerance };
}

/** A stage that gave no numbers. */
function failure(stage: string, note: string, tolerance: number): ParityLine {
  const { NaN: none } = Number;
  return { stage, relativeRms: none, maxAbsolute: none, tolerance, ok: false, note };
}
