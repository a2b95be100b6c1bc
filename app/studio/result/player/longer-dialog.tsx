import { useState } from 'react';
import {
  type Completed,
  maxPromptLength,
  parameterRanges,
  type RunOptions,
} from '../../../../lib/contract';
import { endOf } from '../../../../lib/predictions/saved-runs';
import { Modal } from '../../../models/modal';
import { useAnswer } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { Switch } from '../../../shared/fields';
import { loadModels } from '../../../shared/use-models';
import { t } from '../../../texts';
import '../../../texts/en/result';

/** What a person chooses for the continuation of a video. */
export interface LongerChoice {
  readonly prompt: string;
  /** In seconds. */
  readonly duration: number;
  /** Whether its motion is kept; else it goes on from its last picture. */
  readonly keepsMotion: boolean;
  readonly options: Pick<RunOptions, 'keepsColours'>;
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
  const motion = useAnswer(
    () => motionOf(prediction).catch(() => noMotion),
    [prediction.id, prediction.model],
  );
  const [wantsMotion, setWantsMotion] = useState<boolean | null>(null);
  const [keepsColours, setKeepsColours] = useState(true);
  const keepsMotion = motion?.possible ? (wantsMotion ?? motion.usual) : false;
  return (
    <Modal title={t('result.longer')} close={null} onClose={onClose}>
      <form
        className="stack gap-16"
        onSubmit={(event) => {
          event.preventDefault();
          onStart({ prompt, duration, keepsMotion, options: { keepsColours } });
          onClose();
        }}
      >
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
        <div className="frame-range short stack gap-12 text-l">
          <label className="strong" htmlFor="longer-duration">
            {t('result.duration')}
          </label>
          <input
            id="longer-duration"
            type="range"
            min={min}
            max={max}
            value={duration}
            onChange={(event) => setDuration(event.target.valueAsNumber)}
          />
          <span className="numbers">{t('common.seconds', { seconds: duration })}</span>
        </div>
        <div className="field">
          {motion?.possible && (
            <Switch
              name={t('result.keepsMotion')}
              hint={t(motion.latents ? 'result.keepsMotionHint' : 'result.motionGone')}
              checked={keepsMotion}
              onChange={setWantsMotion}
            />
          )}
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
          <button type="submit" className="primary" disabled={!motion || prompt.trim() === ''}>
            {t('result.continue')}
          </button>
          <Button onClick={onClose}>{t('result.cancel')}</Button>
        </div>
      </form>
    </Modal>
  );
}

/** How the motion of a video can be kept. */
interface Motion {
  /** Whether its model can. */
  readonly possible: boolean;
  readonly usual: boolean;
  /** Whether its last latents are there; else its last frames are encoded again. */
  readonly latents: boolean;
}

async function motionOf({ id, model }: Completed): Promise<Motion> {
  const [end, models] = await Promise.all([endOf(id), loadModels()]);
  const manifest = models.find((each) => each.manifest.id === model)?.manifest;
  const { latents = 0, keepsMotion: usual = false } = manifest?.continuation ?? {};
  return { possible: latents > 0, usual, latents: end !== null };
}

/** What cannot be read is not there. */
const noMotion: Motion = { possible: false, usual: false, latents: false };
