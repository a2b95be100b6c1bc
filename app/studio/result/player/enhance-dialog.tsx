import { useState } from 'react';
import {
  type Completed,
  chosenSwitches,
  type Finishing,
  finishersOf,
  switches,
  switchesOn,
  upscalers,
} from '../../../../lib/contract';
import { Modal } from '../../../models/modal';
import { getRunner } from '../../../runner';
import { Button } from '../../../shared/button';
import { Switch } from '../../../shared/fields';
import { FinisherDownload } from '../../../shared/finisher';
import { t } from '../../../texts';
import '../../../texts/en/form';
import '../../../texts/en/result';
import { TaskStatus, useTask } from '../../../shared/task';
import { keepVideo } from './keep-video';

/** What can be made of a finished video. */
const enhancements = ['smooth', 'upscale'] as const;
export type Enhancement = (typeof enhancements)[number];

/** What a video is not yet; frames between larger ones take too much. */
export function enhancementsOf({ parameters }: Completed) {
  const on = switchesOn(parameters);
  return enhancements
    .filter((kind) => !on.includes(kind))
    .map((kind) => ({ kind, possible: kind !== 'smooth' || !on.includes('upscale') }));
}

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
  const [upscaler, setUpscaler] = useState<Finishing['upscaler']>();
  const finishing = chosenSwitches({ [kind]: switches[kind].on, upscaler });
  const task = useTask();
  const make = () =>
    task.run(async (signal, onShare) => {
      const { store } = getRunner();
      const video = await getRunner().enhance(
        {
          file,
          finishing,
          // What was cut or ended early does not end where it begins.
          loop: parameters.loop === true && !parts && !result.finishedEarly,
          backend,
        },
        signal,
        (event) => event.type === 'frame' && onShare(event.frame / event.frames),
      );
      const used = [{ row: prediction, from: 0, to: result.frames }];
      const kept = await keepVideo(store, video, { used, finishing, copied: false });
      onClose();
      onKept(kept);
    });
  const { busy } = task;
  const { width, height, frameRate } = result;
  return (
    <Modal
      title={t(`result.enhance.${kind}`)}
      width={520}
      buttons={
        <Button className="primary" disabled={busy} onClick={make}>
          {t('result.make')}
        </Button>
      }
      close={t('result.cancel')}
      onClose={onClose}
    >
      <p>
        {t(`result.enhanceHint.${kind}`, {
          width: 2 * width,
          height: 2 * height,
          frameRate: 2 * frameRate,
        })}
      </p>
      {kind === 'upscale' && (
        <div className="field">
          <Switch
            name={t('form.upscaler')}
            hint={t('form.upscalerHint')}
            disabled={busy}
            checked={upscaler !== undefined}
            onChange={(on) => setUpscaler(on ? upscalers[1] : undefined)}
          />
        </div>
      )}
      {!busy && finishersOf(finishing).map((part) => <FinisherDownload key={part} part={part} />)}
      <TaskStatus task={task} name={t('result.writing')} />
    </Modal>
  );
}
