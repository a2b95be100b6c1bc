import { useLiveQuery } from 'dexie-react-hooks';
import { useState } from 'react';
import { formatBytes, type Prediction } from '../../lib/contract';
import {
  bytesOf,
  deletableVideos,
  deleteVideos,
  videosOf,
} from '../../lib/predictions/stored-videos';
import { Confirmation } from '../models/modal';
import { getRunner } from '../runner';
import { t } from '../texts';
import '../texts/en/models';
import '../texts/en/settings';
import { Kind } from './kind';

/** Which videos are deleted, by their age in days. */
const ages = [
  { days: 0, name: 'settings.allVideos' },
  { days: 7, name: 'settings.olderThanWeek' },
  { days: 30, name: 'settings.olderThanMonth' },
  { days: 180, name: 'settings.olderThanHalfYear' },
] as const;

/** Finished videos, and the deletion of many at once. */
export function StoredVideos(props: { onDelete: (work: () => Promise<void>) => void }) {
  const rows = useLiveQuery(readRows, []);
  const [days, setDays] = useState(0);
  const [asking, setAsking] = useState(false);
  const videos = videosOf(rows ?? []);
  const chosen = deletableVideos(videos, days, Date.now());
  return (
    <Kind
      name={t('settings.videos')}
      bytes={rows ? bytesOf(videos) : null}
      hint={t('settings.videosHint', { count: videos.length })}
    >
      <select
        aria-label={t('settings.whichVideos')}
        value={days}
        onChange={(event) => setDays(Number(event.target.value))}
      >
        {ages.map((age) => (
          <option key={age.days} value={age.days}>
            {t(age.name)}
          </option>
        ))}
      </select>
      <button
        type="button"
        className="danger"
        disabled={chosen.length === 0}
        onClick={() => setAsking(true)}
      >
        {t('settings.deleteVideos', { count: chosen.length })}
      </button>
      {asking && (
        <Confirmation
          title={t('settings.deleteVideosQuestion', { count: chosen.length })}
          keep={t('settings.keepThem')}
          action={t('models.delete')}
          onConfirm={() => {
            setAsking(false);
            props.onDelete(() => deleteVideos(getRunner().store, chosen));
          }}
          onClose={() => setAsking(false)}
        >
          {t('settings.deleteVideosText', { bytes: formatBytes(bytesOf(chosen)) })}
        </Confirmation>
      )}
    </Kind>
  );
}

/** No rows where the database is blocked: the studio says so. */
async function readRows(): Promise<readonly Prediction[]> {
  return getRunner()
    .store.list()
    .catch(() => []); // The page of the videos says itself that they cannot be read.
}
