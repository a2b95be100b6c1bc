import { useState } from 'react';
import { maxPromptLength, parameterRanges } from '../../../../lib/contract/parameters';
import type { Completed } from '../../../../lib/contract/prediction';
import { Modal } from '../../../models/modal';
import { t } from '../../../texts';
import '../../../texts/en/result';

/** What a person chooses for the continuation of a video. */
export interface LongerChoice {
  readonly prompt: string;
  /** In seconds. */
  readonly duration: number;
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
  return (
    <Modal titleId="longer-title" onClose={onClose}>
      <form
        className="longer"
        onSubmit={(event) => {
          event.preventDefault();
          onStart({ prompt, duration });
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
        <div className="actions">
          <button type="submit" className="primary" disabled={prompt.trim() === ''}>
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
