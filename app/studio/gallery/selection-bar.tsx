import { useState } from 'react';
import type { Completed, Prediction } from '../../../lib/contract';
import { getRunner } from '../../runner';
import { downloadFile } from '../../shared/browser';
import { Button } from '../../shared/button';
import { later } from '../../shared/later';
import { ProblemAlert } from '../../shared/messages';
import { useTask } from '../../shared/task';
import { t } from '../../texts';
import '../../texts/en/gallery';
import type { PredictionStore } from '../../../lib/predictions/store';
import { readVideo } from '../../../lib/predictions/videos';
import { videoToSave } from '../../shared/saved-video';
import { videoName } from '../result/video-name';
import { TagsDialog } from './tags-dialog';

const CompareDialog = later(
  async () => (await import('../result/player/compare-dialog')).CompareDialog,
);

/** What can be done with the selected predictions. */
export function SelectionBar(props: {
  selected: readonly Prediction[];
  /** All tags that there are. */
  knownTags: readonly string[];
  onSelectAll: () => void;
  onClear: () => void;
  onDelete: () => void;
}) {
  const { selected, knownTags, onSelectAll, onClear, onDelete } = props;
  const [dialog, setDialog] = useState<'compare' | 'tags' | null>(null);
  const close = () => setDialog(null);
  const zip = useTask();
  const videos = selected.filter((prediction) => prediction.status === 'completed');
  const [first, second] = selected.length === 2 ? videos : [];

  const download = () =>
    zip.run(async () => {
      downloadFile(await zipVideos(getRunner().store, videos), 'kinora-videos.zip');
    });

  return (
    <>
      <div className="selection-bar row wrap">
        <span role="status" className="strong numbers">
          {t('gallery.selected', { count: selected.length })}
        </span>
        <Button className="small" onClick={onSelectAll}>
          {t('gallery.selectAll')}
        </Button>
        <Button className="small" onClick={onClear}>
          {t('gallery.clear')}
        </Button>
        {first && second && (
          <Button className="small" onClick={() => setDialog('compare')}>
            {t('gallery.compare')}
          </Button>
        )}
        <Button className="small" onClick={() => setDialog('tags')}>
          {t('gallery.tags')}
        </Button>
        <Button
          className="small"
          title={t('gallery.zipHint')}
          disabled={videos.length === 0 || zip.busy}
          onClick={download}
        >
          {zip.busy ? t('gallery.makingZip') : t('gallery.downloadZip')}
        </Button>
        <Button className="small danger" onClick={onDelete}>
          {t('gallery.delete')}
        </Button>
      </div>
      {dialog === 'tags' && <TagsDialog predictions={selected} known={knownTags} onClose={close} />}
      {dialog === 'compare' && first && second && (
        <CompareDialog first={first} second={second} onClose={close} />
      )}
      <ProblemAlert error={zip.problem} />
    </>
  );
}

/**
 * Puts finished videos into one ZIP, uncompressed, as H.264 does not get smaller.
 *
 * @throws KinoraError `FILE_UNREADABLE` if one of them is not here any more; then there is no ZIP
 */
async function zipVideos(store: PredictionStore, predictions: readonly Completed[]): Promise<Blob> {
  async function* files() {
    // One after the other: a copy is in memory.
    for (const prediction of predictions) {
      const video = await readVideo(prediction.result.videoFile);
      yield {
        name: videoName(prediction),
        lastModified: new Date(prediction.completedAt),
        input: await videoToSave(store, prediction, video),
      };
    }
  }
  const { downloadZip } = await import('client-zip');
  return downloadZip(files()).blob();
}
