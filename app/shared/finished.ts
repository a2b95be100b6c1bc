import { type ErrorRecord, type Prediction, toKinoraError } from '../../lib/contract';
import type { KinoraDatabase } from '../../lib/predictions/database';
import { isAtRest } from '../../lib/predictions/prediction-state';
import type { Runner } from '../../lib/predictions/runner';
import type { PredictionStore } from '../../lib/predictions/store';
import { askToWrite, mayWrite, saveInto } from '../../lib/predictions/video-folder';
import { readVideo } from '../../lib/predictions/videos';
import { videoName } from '../studio/result/video-name';
import { errorTexts, t } from '../texts';
import { loadFinished } from './finished-settings';
import { notify } from './notification';
import { videoToSave } from './saved-video';
import { playSound } from './sound';
import { getUnsaved, setUnsaved } from './unsaved-videos';

/** Announces every run of the studio that ends in this tab, and saves its video, as the settings say. */
export function announceRuns(runner: Pick<Runner, 'store' | 'subscribe' | 'getSnapshot'>): void {
  const { store } = runner;
  let before: Prediction | null = null;
  runner.subscribe(() => {
    const run = runner.getSnapshot();
    const ended = run.status === 'idle' ? before : null;
    // Where the settings cannot be read, nothing was asked for.
    if (run.status !== 'idle' && !before) void renewPermission(store.database).catch(() => {});
    if (ended) void announce(store, ended).catch(() => {});
    before = run.status === 'idle' ? null : run.prediction;
  });
}

/** Shortly after a click on Generate the browser may be asked for a permission that has ended. */
async function renewPermission(database: KinoraDatabase): Promise<void> {
  const { folder } = await loadFinished(database);
  if (!folder || !navigator.userActivation.isActive) return;
  if (!(await mayWrite(folder))) await askToWrite(folder);
}

/** @param before the row as it was when the run began */
async function announce(store: PredictionStore, before: Prediction): Promise<void> {
  const row = await store.get(before.id);
  const text = row && textOf(row, before);
  if (!row || !text) return;
  const { notification, sound, folder } = await loadFinished(store.database);
  if (folder && row.status === 'completed')
    await save(store, [...(getUnsaved()?.ids ?? []), row.id]);
  // The browser may forbid sound.
  if (sound) playSound().catch(() => {});
  const failure = getUnsaved()?.error;
  if (notification) await notify(text, failure ? errorTexts(failure).message : '');
}

/** The message about a run that has ended; null for one that the user ended, or that changed nothing. */
function textOf(row: Prediction, before: Prediction): string | null {
  if (!isAtRest(row)) return null;
  if (row.status === 'completed') {
    const earlier = before.status === 'completed' ? before.result.videoFile : null;
    return row.result.videoFile === earlier ? null : t('shared.videoFinished');
  }
  if (!('error' in row) || row.error.code === 'CANCELLED' || row.error.code === 'PAUSED')
    return null;
  return errorTexts(row.error).message;
}

/** Saves the videos of predictions into the user's folder; those that fail are shown. */
async function save(store: PredictionStore, ids: readonly string[]): Promise<void> {
  const { folder } = await loadFinished(store.database);
  const left: string[] = [];
  let error: ErrorRecord | null = null;
  for (const id of folder ? ids : []) {
    const row = await store.get(id);
    if (!folder || row?.status !== 'completed') continue;
    try {
      const video = await videoToSave(store, row, await readVideo(row.result.videoFile));
      await saveInto(folder, videoName(row), video);
    } catch (thrown) {
      left.push(id);
      error = toKinoraError(thrown).toRecord();
    }
  }
  if (!folder || !error) return setUnsaved(null);
  const denied = !(await mayWrite(folder));
  const retry = async () => {
    // Where it is not granted, saving says so.
    if (denied) await askToWrite(folder).catch(() => false);
    await save(store, left);
  };
  setUnsaved({ ids: left, error, denied, retry });
}
