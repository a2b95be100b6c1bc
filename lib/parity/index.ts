import { z } from 'zod';
import { type Backend, relativeRms } from '../gpu';
import { familyOf } from '../pipeline/open';
import type { ModelFolder } from '../weights';
import { type Golden, openFile, type Tolerance } from './golden';
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
  /** The failure, if there are no numbers to compare. */
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
  const owned: { dispose(): void }[] = [];
  const own: Golden['own'] = (resource) => {
    owned.push(resource);
    return resource;
  };
  const lines: ParityLine[] = [];
  const push = (line: ParityLine) => {
    lines.push(line);
    onLine?.(line);
  };
  const golden = { folder, tensors, backend, loraFiles, quickChecker, own };
  for (const { name, tolerance: of, run } of await network.stages(golden)) {
    if (only && !only.includes(name)) continue;
    const tolerance = toleranceOn(backend, of, asked);
    try {
      for await (const [line, actual, reference = []] of run()) {
        if (typeof actual === 'string') push(failure(line, actual, tolerance));
        else if (typeof reference !== 'string') push(compare(line, actual, reference, tolerance));
        else if (tensors.has(reference)) {
          push(compare(line, actual, await tensors.read(reference), tolerance));
        }
      }
    } catch (error) {
      push(failure(name, String(error), tolerance));
    }
    for (const each of owned.splice(0).reverse()) each.dispose();
    await backend.trim();
  }
  return lines;
}

function toleranceOn({ kernels }: Backend, tolerance: Tolerance, asked?: number): number {
  if (typeof tolerance === 'number') return tolerance;
  const { f32, f16 } = tolerance;
  return asked ?? (kernels && kernels.storage !== 'f32' ? f16?.[kernels.mode] : undefined) ?? f32;
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

/** A line without numbers. */
function failure(stage: string, note: string, tolerance: number): ParityLine {
  const { NaN: none } = Number;
  return { stage, relativeRms: none, maxAbsolute: none, tolerance, ok: false, note };
}
