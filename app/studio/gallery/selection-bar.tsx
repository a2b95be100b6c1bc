import { useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../../lib/contract/errors';
import type { Prediction } from '../../../lib/contract/prediction';
import { downloadFile } from '../../shared/browser';
import { Problem } from '../../shared/messages';
import { t } from '../../texts';
import '../../texts/en/gallery';
import { zipVideos } from './zip';

type ZipState =
  | { readonly status: 'idle' }
  | { readonly status: 'zipping' }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** What can be done with the selected predictions. */
export function SelectionBar(props: {
  selected: readonly Prediction[];
  onSelectAll: () => void;
  onClear: () => void;
  onDelete: () => void;
}) {
  const { selected, onSelectAll, onClear, onDelete } = props;
  const [zip, setZip] = useState<ZipState>({ status: 'idle' });
  const videos = selected.filter((prediction) => prediction.status === 'completed');

  async function download(): Promise<void> {
    setZip({ status: 'zipping' });
    try {
      downloadFile(await zipVideos(videos), 'kinora-videos.zip');
      setZip({ status: 'idle' });
    } catch (thrown) {
      setZip({ status: 'failed', error: toKinoraError(thrown).toRecord() });
    }
  }

  return (
    <>
      <div className="selection-bar">
        <span role="status">{t('gallery.selected', { count: selected.length })}</span>
        <button type="button" className="small" onClick={onSelectAll}>
          {t('gallery.selectAll')}
        </button>
        <button type="button" className="small" onClick={onClear}>
          {t('gallery.clear')}
        </button>
        <button
          type="button"
          className="small"
          disabled={videos.length === 0 || zip.status === 'zipping'}
          onClick={() => void download()}
        >
          {zip.status === 'zipping' ? t('gallery.makingZip') : t('gallery.downloadZip')}
        </button>
        <button type="button" className="small danger" onClick={onDelete}>
          {t('gallery.delete')}
        </button>
        {videos.length > 0 && <span className="field-hint">{t('gallery.zipHint')}</span>}
      </div>
      {zip.status === 'failed' && (
        <div role="alert">
          <Problem error={zip.error} />
        </div>
      )}
    </>
  );
}
