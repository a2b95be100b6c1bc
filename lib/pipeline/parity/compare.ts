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

/** Compares two tensors element by element. */
export function compare(
  stage: string,
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
): ParityLine {
  if (actual.length !== expected.length) {
    return failure(stage, tolerance, `${actual.length} elements, expected ${expected.length}`);
  }
  let difference = 0;
  let norm = 0;
  let maxAbsolute = 0;
  for (let i = 0; i < expected.length; i++) {
    const e = expected[i] as number;
    const d = Math.abs((actual[i] as number) - e);
    difference += d * d;
    norm += e * e;
    maxAbsolute = Math.max(maxAbsolute, d); // NaN sticks
  }
  // Equal zeros are equal; no elements at all are NaN, and NaN stays NaN.
  const equal = difference === 0 && expected.length > 0;
  const relativeRms = equal ? 0 : Math.sqrt(difference / norm);
  return { stage, relativeRms, maxAbsolute, tolerance, ok: relativeRms <= tolerance };
}

/** A stage that gave no numbers. */
export function failure(stage: string, tolerance: number, note: string): ParityLine {
  return {
    stage,
    relativeRms: Number.NaN,
    maxAbsolute: Number.NaN,
    tolerance,
    ok: false,
    note,
  };
}
