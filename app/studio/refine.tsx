import { useEffect, useState } from 'react';
import type { Prediction } from '../../lib/contract/prediction';
import { hasLatents, isRefinable } from '../../lib/predictions/saved-runs';

/** Offers to decode a video of the tiny decoder again, while its latents are kept. */
export function Refine(props: { prediction: Prediction; busy: boolean; onRefine: () => void }) {
  const { prediction, busy, onRefine } = props;
  if (!useRefinable(prediction)) return null;
  return (
    <div className="refine">
      <p className="field-hint">
        The small, fast decoder made these frames. Refine makes them again with the full decoder:
        the same motion in finer detail. That takes longer, and the new video replaces this one.
      </p>
      <button type="button" disabled={busy} title="Decode again in full quality" onClick={onRefine}>
        Refine
      </button>
    </div>
  );
}

function useRefinable(prediction: Prediction): boolean {
  const { id } = prediction;
  const [kept, setKept] = useState(false);
  const refinable = isRefinable(prediction);
  useEffect(() => {
    let current = true;
    setKept(false);
    if (!refinable) return;
    hasLatents(id).then(
      (has) => current && setKept(has),
      () => {}, // Storage that cannot be read has no latents to offer.
    );
    return () => {
      current = false;
    };
  }, [id, refinable]);
  return kept;
}
