import { useEffect, useState } from 'react';
import type { Prediction } from '../../../lib/contract';
import { hasLatents, isRefinable } from '../../../lib/predictions/saved-runs';
import { Button } from '../../shared/button';
import { t } from '../../texts';
import '../../texts/en/run';

/** Offers to decode a video of the tiny decoder again, while its latents are kept. */
export function Refine(props: { prediction: Prediction; busy: boolean; onRefine: () => void }) {
  const { prediction, busy, onRefine } = props;
  if (!useRefinable(prediction)) return null;
  return (
    <div className="split">
      <p className="field-hint grow">{t('run.refineHint')}</p>
      <Button disabled={busy} title={t('run.refineTitle')} onClick={onRefine}>
        {t('run.refine')}
      </Button>
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
