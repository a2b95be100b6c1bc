import type { Prediction } from '../../../lib/contract';
import { hasLatents, isRefinable } from '../../../lib/predictions/saved-runs';
import { useAnswer } from '../../shared/browser';
import { Button } from '../../shared/button';
import { t } from '../../texts';
import '../../texts/en/run';

/** Offers to decode a video of the tiny decoder again, while its latents are kept. */
export function Refine(props: { prediction: Prediction; busy: boolean; onRefine: () => void }) {
  const { prediction, busy, onRefine } = props;
  const { id } = prediction;
  const refinable = isRefinable(prediction);
  // Storage that cannot be read has no latents to offer.
  const kept = useAnswer(async () => refinable && hasLatents(id), [id, refinable]);
  if (!kept) return null;
  return (
    <div className="split">
      <p className="field-hint grow">{t('run.refineHint')}</p>
      <Button disabled={busy} title={t('run.refineTitle')} onClick={onRefine}>
        {t('run.refine')}
      </Button>
    </div>
  );
}
