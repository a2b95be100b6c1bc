import { useState } from 'react';
import type { Completed } from '../../../lib/contract/prediction';
import { maxPromptLength, parameterRanges } from '../../../lib/contract/request';
import { Modal } from '../../models/modal';

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
        <h2 id="longer-title">Make it longer</h2>
        <p className="field-hint">
          A new video starts from the last frame, with the same settings and another seed. Then you
          can join them.
        </p>
        <div className="field">
          <label htmlFor="longer-prompt">What happens next?</label>
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
          <label htmlFor="longer-duration">Duration</label>
          <input
            id="longer-duration"
            type="range"
            {...{ min, max }}
            value={duration}
            onChange={(event) => setDuration(event.target.valueAsNumber)}
          />
          <span>{duration} s</span>
        </div>
        <div className="actions">
          <button type="submit" className="primary" disabled={prompt.trim() === ''}>
            Continue the video
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Modal>
  );
}
