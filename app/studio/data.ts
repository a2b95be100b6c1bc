/** What of the studio needs the database. The form does not wait for it: `use-data.ts` loads it. */
export { liveQuery } from 'dexie';
export { databaseError, loadDraft, saveDraft } from '../../lib/predictions/database';
export { loadSetting, saveSetting } from '../../lib/predictions/settings';
export { getQueue, getRunner } from '../runner';
