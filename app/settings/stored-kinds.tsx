import { useCallback, useEffect, useState } from 'react';
import { entriesOf, formatBytes, type LibrarySnapshot, type Prediction } from '../../lib/contract';
import { deleteStoredApp, storedAppBytes } from '../../lib/offline/version-cache';
import {
  keptLatentsLimit,
  type SavedRunBytes,
  savedRunBytes,
  sweepRuns,
} from '../../lib/predictions/saved-runs';
import { getLibrary } from '../library';
import { viewModel } from '../models/model-view';
import { Outcome } from '../models/outcome';
import { type PageState, subjects } from '../models/page-state';
import type { LibraryActions } from '../models/use-library-actions';
import { getRunner } from '../runner';
import { Button } from '../shared/button';
import { t } from '../texts';
import '../texts/en/models';
import '../texts/en/settings';
import { useLiveQuery } from 'dexie-react-hooks';
import {
  bytesOf,
  deletableVideos,
  deleteVideos,
  videosOf,
} from '../../lib/predictions/stored-videos';
import { Confirmation } from '../models/modal';
import { Select } from '../shared/fields';
import { useTask } from '../shared/task';
import { Kind } from './kind';

/** What Kinora stores in this browser, by kind, and how to free it. */
export function StoredKinds(props: {
  library: LibrarySnapshot;
  page: PageState;
  actions: LibraryActions;
}) {
  const { library, page, actions } = props;
  const { runs, appBytes, read } = useStoredBytes();
  const { problem, run } = useTask();
  const free = (work: () => Promise<void>) =>
    run(async () => {
      await work();
      await Promise.all([read(), getLibrary().refresh()]);
    });
  return (
    <>
      <ul className="kinds">
        <StoredModels library={library} page={page} actions={actions} />
        <StoredVideos onDelete={free} />
        {runs && runs.interrupted > 0 && (
          <Kind
            name={t('settings.interrupted')}
            bytes={runs.interrupted}
            hint={t('settings.interruptedHint')}
          />
        )}
        {appBytes !== null && (
          <Kind name={t('settings.appFiles')} bytes={appBytes} hint={t('settings.appFilesHint')}>
            <Button
              className="danger"
              disabled={appBytes === 0}
              onClick={() => free(deleteStoredApp)}
            >
              {t('settings.deleteAppFiles')}
            </Button>
          </Kind>
        )}
      </ul>
      {runs && (
        <details className="more">
          <summary>{t('settings.expert')}</summary>
          <ul className="kinds">
            <Kind
              name={t('settings.latents')}
              bytes={runs.latents}
              hint={t('settings.latentsHint', { limit: formatBytes(keptLatentsLimit) })}
            >
              <Button
                className="danger"
                disabled={runs.latents === 0}
                onClick={() => free(() => sweepRuns(getRunner().store, 0))}
              >
                {t('settings.deleteLatents')}
              </Button>
            </Kind>
          </ul>
        </details>
      )}
      <Outcome doing={undefined} done={undefined} problem={problem ?? undefined} />
    </>
  );
}

/** Models, tools and LoRAs, each with its size. */
function StoredModels(props: {
  library: LibrarySnapshot;
  page: PageState;
  actions: LibraryActions;
}) {
  const { library, page, actions } = props;
  const entries = entriesOf(library)
    .map((entry) => ({ entry, view: viewModel(entry) }))
    .filter(({ view }) => view.bytesStored > 0);
  const files = [
    ...entries.map(({ entry: { manifest }, view: { status, bytesStored } }) => ({
      kind: 'files' as const,
      id: manifest.id,
      name: manifest.name,
      bytes: bytesStored,
      // Downloads and checks in progress are paused or cancelled on the Models page first.
      idle: status === 'ready' || status === 'partial' || status === 'absent',
    })),
    ...library.loras.map(({ name, bytes }) => ({
      kind: 'lora' as const,
      id: name,
      name,
      bytes,
      idle: true,
    })),
  ];
  const failed = files.map(
    ({ kind, id }) => page.problems[kind === 'lora' ? subjects.addLora : id],
  );
  return (
    <>
      <Kind
        name={t('settings.storedModels')}
        bytes={library.bytesStored}
        hint={t('settings.storedModelsHint')}
      >
        {files.length > 0 && (
          <ul className="kind-files stack gap-8 full">
            {files.map(({ kind, id, name, bytes, idle }) => (
              <li key={id} className="split baseline">
                <span>{name}</span>
                <span className="measure numbers">{formatBytes(bytes)}</span>
                <Button
                  className="danger small"
                  disabled={!idle || page.doing[id] !== undefined}
                  title={idle ? undefined : t('settings.atWork')}
                  aria-label={t('settings.deleteNamed', { name })}
                  onClick={() => actions.askRemoval({ kind, id })}
                >
                  {t('models.delete')}
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Kind>
      <Outcome doing={undefined} done={undefined} problem={failed.find(Boolean)} />
    </>
  );
}

interface StoredBytes {
  readonly runs: SavedRunBytes | null;
  readonly appBytes: number | null;
}

/** What is read from the browser's storage; null where it cannot be read. */
function useStoredBytes(): StoredBytes & { read: () => Promise<void> } {
  const [bytes, setBytes] = useState<StoredBytes>({ runs: null, appBytes: null });
  const read = useCallback(async () => {
    const [runs, appBytes] = await Promise.all([
      // Sizes that cannot be measured are not shown.
      savedRunBytes(getRunner().store).catch(() => null),
      storedAppBytes().catch(() => null),
    ]);
    setBytes({ runs, appBytes });
  }, []);
  useEffect(() => void read(), [read]);
  return { ...bytes, read };
}

/** Which videos are deleted, by their age in days. */
const ages = [
  { days: 0, name: 'settings.allVideos' },
  { days: 7, name: 'settings.olderThanWeek' },
  { days: 30, name: 'settings.olderThanMonth' },
  { days: 180, name: 'settings.olderThanHalfYear' },
] as const;

/** Finished videos, and the deletion of many at once. */
function StoredVideos(props: { onDelete: (work: () => Promise<void>) => void }) {
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
      <Select
        aria-label={t('settings.whichVideos')}
        value={`${days}`}
        options={ages.map((age) => [`${age.days}`, t(age.name)])}
        onChange={(chosen) => setDays(Number(chosen))}
      />
      <Button className="danger" disabled={chosen.length === 0} onClick={() => setAsking(true)}>
        {t('settings.deleteVideos', { count: chosen.length })}
      </Button>
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
