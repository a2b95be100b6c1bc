import { useEffect, useRef, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../../../lib/contract/errors';
import type { Finishing } from '../../../../lib/contract/parameters';
import type { Completed } from '../../../../lib/contract/prediction';
import { newPredictionId } from '../../../../lib/predictions/run-input';
import { Modal } from '../../../models/modal';
import { getRunner } from '../../../runner';
import { FinisherDownload } from '../../../shared/finisher';
import { Problem } from '../../../shared/messages';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { keepVideo } from './keep-video';
import './player.css';

/** What can be made of a finished video. */
export type Enhancement = 'upscale' | 'smooth';

type EnhanceState =
  | { readonly status: 'choosing'; readonly problem: ErrorRecord | null }
  | { readonly status: 'writing'; readonly frame: number };

/** Makes a larger or smoother video of a finished one, which stays. */
export function EnhanceDialog(props: {
  kind: Enhancement;
  prediction: Completed;
  file: File;
  /** The result was stored as a video of its own. */
  onKept: (id: string) => void;
  onClose: () => void;
}) {
  const { kind, prediction, file, onKept, onClose } = props;
  const { parameters, parts, backend, result } = prediction;
  const [state, setState] = useState<EnhanceState>({ status: 'choosing', problem: null });
  const writing = useRef<AbortController>(null);
  useEffect(() => () => writing.current?.abort(), []);

  async function make(): Promise<void> {
    const running = new AbortController();
    const { signal } = running;
    writing.current = running;
    setState({ status: 'writing', frame: 0 });
    const finishing: Finishing = kind === 'upscale' ? { upscale: 2 } : { smooth: true };
    const { store } = getRunner();
    try {
      const video = await getRunner().enhance(
        {
          file,
          id: newPredictionId(),
          finishing,
          // What was cut or ended early does not end where it begins.
          loop: parameters.loop === true && !parts && !result.finishedEarly,
          safety: result.safety,
          backend,
        },
        signal,
        (event) => event.type === 'frame' && setState({ status: 'writing', frame: event.frame }),
      );
      const kept = await keepVideo(store, video, [prediction], false);
      onClose();
      onKept(kept);
    } catch (thrown) {
      if (signal.aborted) return;
      setState({ status: 'choosing', problem: toKinoraError(thrown).toRecord() });
    }
  }

  const busy = state.status === 'writing';
  const { width, height, frames, frameRate } = result;
  return (
    <Modal titleId="enhance-title" className="export-dialog" onClose={onClose}>
      <h2 id="enhance-title">{t(`result.enhance.${kind}`)}</h2>
      <p className="dialog-text">
        {t(`result.enhanceHint.${kind}`, {
          width: 2 * width,
          height: 2 * height,
          frameRate: 2 * frameRate,
        })}
      </p>
      {kind === 'smooth' && !busy && <FinisherDownload part="interpolator" />}
      {state.status === 'choosing' && state.problem && (
        <div role="alert">
          <Problem error={state.problem} />
        </div>
      )}
      {busy && (
        <label className="dialog-text">
          {t('result.framesDone', { frame: state.frame, frames })}
          <progress value={state.frame} max={frames} />
        </label>
      )}
      <div className="actions">
        <button type="button" className="primary" disabled={busy} onClick={() => void make()}>
          {t('result.make')}
        </button>
        <button type="button" onClick={onClose}>
          {t('result.cancel')}
        </button>
      </div>
    </Modal>
  );
}
