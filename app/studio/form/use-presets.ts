import { toKinoraError } from '../../../lib/contract';
import { type Data, loadData, useStored } from '../use-data';
import { changePresets, type Preset, type PresetAction, storedPresets } from './presets';

const setting = 'presets';
const none: readonly Preset[] = [];

async function readPresets({ getRunner, loadSetting }: Data): Promise<readonly Preset[]> {
  return storedPresets(await loadSetting(getRunner().store.database, setting));
}

/** The page says itself that the database cannot be read. */
const presetsOrNone = (data: Data) => readPresets(data).catch(() => none);

/** The presets of this browser, and what changes them; other tabs see the change. */
export function usePresets(): {
  presets: readonly Preset[];
  /** @throws KinoraError `STORAGE_FULL` */
  change: (action: PresetAction) => Promise<void>;
} {
  const presets = useStored(presetsOrNone) ?? none;
  async function change(action: PresetAction): Promise<void> {
    try {
      const { getRunner, loadSetting, saveSetting } = await loadData();
      const { database } = getRunner().store;
      await database.transaction('rw', database.settings, async () => {
        const before = storedPresets(await loadSetting(database, setting));
        await saveSetting(database, setting, changePresets(before, action));
      });
    } catch (thrown) {
      throw toKinoraError(thrown);
    }
  }
  return { presets, change };
}
