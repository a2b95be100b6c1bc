import type { Prediction } from '../../../lib/contract/prediction';
import { getRunner } from '../../runner';
import { downloadFile } from '../../shared/browser';
import { t } from '../../texts';
import '../../texts/en/result';
import { videoName } from './video-name';

/** Offers a finished video that could not be stored; nothing where there is none. */
export function UnsavedVideo({ prediction }: { prediction: Prediction }) {
  const video = getRunner().unsavedVideo(prediction.id);
  if (!video) return null;
  return (
    <div className="input-notice" role="status">
      <p>{t('result.unsaved')}</p>
      <button
        type="button"
        className="primary"
        onClick={() => downloadFile(video, videoName(prediction))}
      >
        {t('result.downloadUnsaved')}
      </button>
    </div>
  );
}
