import type { Backend } from '../../gpu';
import { openGolden } from '../../models/wan22/parity/golden';
import { stages } from '../../models/wan22/parity/stages';
import type { ModelFolder } from '../../weights';
import { failure, type ParityLine } from './compare';

export type { ParityLine };

export interface ParityOptions {
  /** Replaces the tolerances of all stages with f32 weights. */
  readonly tolerance?: number;
  /** Names of the files in `loras/`: a folder behind HTTP cannot be listed. */
  readonly loraFiles?: readonly string[];
  readonly onLine?: (line: ParityLine) => void;
}

/**
 * Runs every stage for which a folder laid out like the goldens has a reference, and compares.
 * Tolerances: 1e-4 for a stage alone, 1e-3 for the loop and the video, 2e-3 for the
 * video from public files, 5e-2 with weights that we quantise to 8 bits.
 *
 * @throws KinoraError when the folder has no goldens or no model that can be read
 */
export async function runParity(
  folder: ModelFolder,
  backend: Backend,
  options: ParityOptions = {},
): Promise<ParityLine[]> {
  const golden = await openGolden(folder);
  const context = {
    golden,
    backend,
    stageTolerance: options.tolerance ?? 1e-4,
    loopTolerance: options.tolerance ?? 1e-3,
    formatsVideoTolerance: options.tolerance ?? 2e-3,
    loraFiles: options.loraFiles ?? [],
  };
  const lines: ParityLine[] = [];
  const push = (line: ParityLine) => {
    lines.push(line);
    options.onLine?.(line);
  };
  for (const stage of stages) {
    const names = [...golden.tensors.names()];
    if (!stage.checks.some((pattern) => names.some((name) => pattern.test(name)))) continue;
    try {
      for await (const line of stage.run(context)) push(line);
    } catch (error) {
      push(failure(stage.name, context.stageTolerance, String(error)));
    }
    await backend.trim();
  }
  return lines;
}
