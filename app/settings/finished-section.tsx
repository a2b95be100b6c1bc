import { useLiveQuery } from 'dexie-react-hooks';
import { useEffect, useState } from 'react';
import { type ErrorRecord, KinoraError } from '../../lib/contract';
import { databaseError } from '../../lib/predictions/database';
import { askToWrite, mayWrite, type VideoFolder } from '../../lib/predictions/video-folder';
import { getRunner } from '../runner';
import { Button } from '../shared/button';
import { Switch } from '../shared/fields';
import { changeFinished, type FinishedSettings, loadFinished } from '../shared/finished-settings';
import { Problem } from '../shared/messages';
import { hasNotifications } from '../shared/notification';
import { playSound } from '../shared/sound';
import { useTask } from '../shared/task';
import { t } from '../texts';
import '../texts/en/settings';

/** What happens when a video of the studio is finished. */
export function FinishedSection() {
  const stored = useLiveQuery(readSettings, []);
  const { problem, run } = useTask();
  const settings = stored?.settings;
  const change = (changes: Partial<FinishedSettings>) =>
    changeFinished(getRunner().store.database, changes);
  const allowed = hasNotifications() && Notification.permission === 'granted';
  const error = problem ?? stored?.error;
  return (
    <section className="panel" aria-labelledby="finished-title">
      <h2 id="finished-title">{t('settings.finished')}</h2>
      <div className="field">
        <Switch
          name={t('settings.notification')}
          hint={t('settings.notificationHint')}
          disabled={!settings}
          checked={settings?.notification === true && allowed}
          onChange={(notification) =>
            run(async () => {
              if (notification) await askForNotifications();
              await change({ notification });
            })
          }
        />
        <Switch
          name={t('settings.sound')}
          disabled={!settings}
          checked={settings?.sound === true}
          onChange={(sound) =>
            run(async () => {
              // The browser may forbid it.
              if (sound) playSound().catch(() => {});
              await change({ sound });
            })
          }
        />
        <Switch
          name={t('settings.imageInFile')}
          hint={t('settings.imageInFileHint')}
          disabled={!settings}
          checked={settings?.imageInFile === true}
          onChange={(imageInFile) => run(() => change({ imageInFile }))}
        />
      </div>
      {settings && (
        <FolderField
          folder={settings.folder}
          onChoose={() => run(async () => change({ folder: await chooseFolder() }))}
          onStop={() => run(() => change({ folder: null }))}
        />
      )}
      <div role="status" className="notice">
        {error && <Problem error={error} />}
      </div>
    </section>
  );
}

/** Where finished videos are also saved. */
function FolderField(props: {
  folder: VideoFolder | null;
  onChoose: () => void;
  onStop: () => void;
}) {
  const { folder, onChoose, onStop } = props;
  const [writable, setWritable] = useState(true);
  useEffect(() => {
    setWritable(true);
    // A folder that cannot be asked is found when a video is saved.
    if (folder) mayWrite(folder).then(setWritable, () => {});
  }, [folder]);
  return (
    <fieldset className="field" aria-describedby="folder-hint">
      <legend>{t('settings.folder')}</legend>
      <p className="field-hint" id="folder-hint">
        {folderText(folder)}
      </p>
      {canChoose() && (
        <div className="actions">
          {folder && !writable && (
            <Button
              className="primary"
              onClick={() => void askToWrite(folder).then(setWritable, () => {})}
            >
              {t('settings.allowAgain')}
            </Button>
          )}
          <Button onClick={onChoose}>
            {t(folder ? 'shared.anotherFolder' : 'settings.chooseFolder')}
          </Button>
          {folder && <Button onClick={onStop}>{t('settings.stopSaving')}</Button>}
        </div>
      )}
      {folder && !writable && <p className="field-error">{t('settings.folderAsksAgain')}</p>}
    </fieldset>
  );
}

function folderText(folder: VideoFolder | null): string {
  if (!canChoose()) return t('settings.folderUnsupported');
  if (folder) return t('settings.folderChosen', { name: folder.name });
  return t('settings.folderNone');
}

/** Part of the File System Access API, which TypeScript's library does not declare yet. */
interface FolderPicker {
  showDirectoryPicker?(options: {
    id: string;
    mode: 'readwrite';
    startIn: 'videos';
  }): Promise<VideoFolder>;
}

const picker = () => window as FolderPicker;

function canChoose(): boolean {
  return picker().showDirectoryPicker !== undefined;
}

/** @throws KinoraError `CANCELLED` when the user closes the dialog */
async function chooseFolder(): Promise<VideoFolder> {
  const folder = await picker().showDirectoryPicker?.({
    id: 'kinora-videos',
    mode: 'readwrite',
    startIn: 'videos',
  });
  if (!folder) throw new KinoraError('CANCELLED');
  return folder;
}

/** @throws KinoraError `NOTIFICATIONS_DENIED` */
async function askForNotifications(): Promise<void> {
  if (hasNotifications() && (await Notification.requestPermission()) === 'granted') return;
  throw new KinoraError('NOTIFICATIONS_DENIED');
}

async function readSettings(): Promise<{ settings?: FinishedSettings; error?: ErrorRecord }> {
  try {
    return { settings: await loadFinished(getRunner().store.database) };
  } catch (thrown) {
    return { error: databaseError(thrown).toRecord() };
  }
}
