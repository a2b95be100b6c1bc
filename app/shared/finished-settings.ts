import type { KinoraDatabase } from '../../lib/predictions/database';
import { loadSetting, saveSetting } from '../../lib/predictions/settings';
import type { VideoFolder } from '../../lib/predictions/video-folder';

/** What happens when a video of the studio is finished. */
export interface FinishedSettings {
  readonly notification: boolean;
  readonly sound: boolean;
  /** Where finished videos are also saved; null for nowhere. */
  readonly folder: VideoFolder | null;
  /** Whether a file that is saved holds its start image, so that it restores the whole request. */
  readonly imageInFile: boolean;
}

const unchanged: FinishedSettings = {
  notification: false,
  sound: false,
  folder: null,
  imageInFile: true,
};
const settingId = 'finished';

/** The stored settings; nothing is announced or saved until the user asks for it. */
export async function loadFinished(database: KinoraDatabase): Promise<FinishedSettings> {
  const stored = (await loadSetting(database, settingId)) as Partial<FinishedSettings> | undefined;
  return { ...unchanged, ...stored };
}

/** @throws KinoraError `STORAGE_FULL`, `STORAGE_BLOCKED` */
export async function changeFinished(
  database: KinoraDatabase,
  changes: Partial<FinishedSettings>,
): Promise<void> {
  await saveSetting(database, settingId, { ...(await loadFinished(database)), ...changes });
}
