import { entriesOf, progressOf, sumProgress } from '../../lib/contract';
import type { LibraryState } from '../library-store';
import { isActive, viewModel } from '../models/model-view';
import { keepAwake } from './browser';
import { showJob } from './running-job';

let awake: AbortController | null = null;

/** Shows what this tab fetches and checks as a job of the Models page. The screen stays on meanwhile. */
export function showLibraryJob(state: LibraryState): void {
  const snapshot = state.status === 'ready' ? state.snapshot : null;
  const loras = snapshot?.loraDownloads ?? [];
  const working = (snapshot ? entriesOf(snapshot) : [])
    .map((entry) => ({ entry, view: viewModel(entry) }))
    .filter(({ view }) => isActive(view.status) || view.pausedBy === 'network');
  if (working.length + loras.length === 0) {
    awake?.abort();
    awake = null;
    showJob('/models', null);
    return;
  }
  if (!awake) {
    awake = new AbortController();
    keepAwake(awake.signal);
  }
  // A part that two of them share counts for its owner.
  const parts = working.flatMap(({ entry }) =>
    entry.parts.filter(({ component }) => !entry.shared?.includes(component)),
  );
  const { bytesDone, bytesTotal } = sumProgress([progressOf(parts), ...loras]);
  const rate = working.reduce((sum, { entry }) => sum + entry.bytesPerSecond, 0);
  // The speed of a LoRA's download is not measured.
  const isTimed = bytesTotal !== null && rate > 0 && loras.length === 0;
  const moves = loras.length > 0 || working.some(({ view }) => isActive(view.status));
  showJob('/models', {
    percent: bytesTotal ? Math.min(99, Math.floor((100 * bytesDone) / bytesTotal)) : null,
    secondsRemaining: isTimed ? Math.max(0, bytesTotal - bytesDone) / rate : null,
    state: moves ? 'running' : 'waiting',
  });
}
