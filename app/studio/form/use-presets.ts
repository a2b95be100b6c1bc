import { useLiveQuery } from 'dexie-react-hooks';
import { toKinoraError } from '../../../lib/contract/errors';
import { loadSetting, saveSetting } from '../../../lib/predictions/settings';
import { getRunner } from '../../runner';
import { changePresets, type Preset, type PresetAction } from './presets';

const setting = 'presets';
const none: readonly Preset[] = [];

async function readPresets(): Promise<readonly Preset[]> {
  const stored = await loadSetting(getRunner().store.database, setting);
  if (stored === undefined) return none;
  // After the database was asked, so that the query is still observed.
  const { parsePresets } = await import('./presets-schema');
  return parsePresets(stored);
}

/** The presets of this browser, and what changes them; other tabs see the change. */
export function usePresets(): {
  presets: readonly Preset[];
  /** @throws KinoraError `STORAGE_FULL` */
  change: (action: PresetAction) => Promise<void>;
} {
  // The page says itself that the database cannot be read.
  const presets = useLiveQuery(() => readPresets().catch(() => none), [], none);
  async function change(action: PresetAction): Promise<void> {
    const { database } = getRunner().store;
    try {
      // A transaction ends while a script is loaded.
      const { parsePresets } = await import('./presets-schema');
      await database.transaction('rw', database.settings, async () => {
        await saveSetting(
          database,
          setting,
          changePresets(parsePresets(await loadSetting(database, setting)), action),
        );
      });
    } catch (thrown) {
      throw toKinoraError(thrown);
    }
  }
  return { presets, change };
}
