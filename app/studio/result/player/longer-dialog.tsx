import { useEffect, useState } from 'react';
import { maxPromptLength, parameterRanges } from '../../../../lib/contract/parameters';
import type { Completed } from '../../../../lib/contract/prediction';
import { endOf } from '../../../../lib/predictions/saved-runs';
import { Modal } from '../../../models/modal';
import { Switch } from '../../../shared/fields';
import { loadModels } from '../../../shared/use-models';
import { t } from '../../../texts';
import '../../../texts/en/result';

/** What a person chooses for the continuation of a video. */
export interface LongerChoice {
  readonly prompt: string;
  /** In seconds. */
  readonly duration: number;
  /** The last latents of the video where its motion is kept; null where it goes on from its last picture. */
  readonly before: Blob | null;
  /** Whether a continuation from the picture is given its colours. */
  readonly keepsColours: boolean;
}

/** Asks what happens next in a video, and how long. */
export function LongerDialog(props: {
  prediction: Completed;
  onStart: (choice: LongerChoice) => void;
  onClose: () => void;
}) {
  const { prediction, onStart, onClose } = props;
  const { parameters } = prediction;
  const [prompt, setPrompt] = useState(parameters.prompt);
  const { min, max } = parameterRanges.duration;
  const [duration, setDuration] = useState<number>(min);
  const kept = useLastLatents(prediction);
  const [wantsMotion, setWantsMotion] = useState<boolean | null>(null);
  const [keepsColours, setKeepsColours] = useState(true);
  const keepsMotion = kept?.latents ? (wantsMotion ?? kept.usual) : false;
  return (
    <Modal titleId="longer-title" onClose={onClose}>
      <form
        className="longer"
        onSubmit={(event) => {
          event.preventDefault();
          const before = keepsMotion ? (kept?.latents ?? null) : null;
          onStart({ prompt, duration, before, keepsColours });
          onClose();
        }}
      >
        <h2 id="longer-title">{t('result.longer')}</h2>
        <p className="field-hint">{t('result.longerHint')}</p>
        <div className="field">
          <label htmlFor="longer-prompt">{t('result.whatNext')}</label>
          <textarea
            id="longer-prompt"
            rows={5}
            maxLength={maxPromptLength}
            required
            value={prompt}
            onChange={(event) => setPrompt(event.target.value)}
          />
        </div>
        <div className="frame-range">
          <label htmlFor="longer-duration">{t('result.duration')}</label>
          <input
            id="longer-duration"
            type="range"
            min={min}
            max={max}
            value={duration}
            onChange={(event) => setDuration(event.target.valueAsNumber)}
          />
          <span>{t('common.seconds', { seconds: duration })}</span>
        </div>
        <div className="field">
          {kept?.latents && (
            <Switch
              name={t('result.keepsMotion')}
              hint={t('result.keepsMotionHint')}
              checked={keepsMotion}
              onChange={setWantsMotion}
            />
          )}
          {kept && !kept.latents && <p className="field-hint">{t('result.motionGone')}</p>}
          {!keepsMotion && (
            <Switch
              name={t('result.keepsColours')}
              hint={t('result.keepsColoursHint')}
              checked={keepsColours}
              onChange={setKeepsColours}
            />
          )}
        </div>
        <div className="actions">
          <button type="submit" className="primary" disabled={!kept || prompt.trim() === ''}>
            {t('result.continue')}
          </button>
          <button type="button" onClick={onClose}>
            {t('result.cancel')}
          </button>
        </div>
      </form>
    </Modal>
  );
}

/** The last latents of a video, where they are kept, and whether its model usually goes on with them; null until read. */
function useLastLatents({ id, model }: Completed) {
  const [kept, setKept] = useState<{ latents: Blob | null; usual: boolean } | null>(null);
  useEffect(() => {
    let current = true;
    Promise.all([endOf(id), loadModels()]).then(
      ([latents, models]) => {
        const manifest = models.find((each) => each.manifest.id === model)?.manifest;
        if (current) setKept({ latents, usual: manifest?.continuation.keepsMotion ?? false });
      },
      // What cannot be read is not there.
      () => current && setKept({ latents: null, usual: false }),
    );
    return () => {
      current = false;
    };
  }, [id, model]);
  return kept;
}
