import type { Prediction } from '../../../lib/contract';
import { getRunner } from '../../runner';
import { downloadFile } from '../../shared/browser';
import { Button } from '../../shared/button';
import { videoToSave } from '../../shared/saved-video';
import { t } from '../../texts';
import '../../texts/en/result';
import { videoName } from './video-name';

/** Offers a finished video that could not be stored; nothing where there is none. */
export function UnsavedVideo({ prediction }: { prediction: Prediction }) {
  const runner = getRunner();
  const unsaved = runner.unsavedVideo(prediction.id);
  if (!unsaved) return null;
  const { video, made } = unsaved;
  return (
    <div className="split info on-bad" role="status">
      <p className="grow">{t('result.unsaved')}</p>
      <Button
        className="primary"
        onClick={async () => {
          // The video is worth more than what its file tells.
          const saved = videoToSave(runner.store, { ...prediction, result: made }, video);
          downloadFile(await saved.catch(() => video), videoName(prediction));
        }}
      >
        {t('result.downloadUnsaved')}
      </Button>
    </div>
  );
}
