import { formatBytes, formatPercent } from '../../lib/contract/format';
import type { LibraryEntry } from '../../lib/contract/library';
import { viewModel } from './model-view';

/** After a reload or a crash: what was under way, and one button to go on. */
export function InterruptedBanner(props: {
  models: readonly LibraryEntry[];
  onResume: (entry: LibraryEntry) => void;
}) {
  const interrupted = props.models.filter((entry) => viewModel(entry).pausedBy === 'interrupted');
  return interrupted.map((entry) => {
    const { fraction, bytesDone } = viewModel(entry);
    // The size of a part that had not begun is not known until the hub is asked again.
    const at =
      fraction === null ? `after ${formatBytes(bytesDone)}` : `at ${formatPercent(fraction)}`;
    return (
      <aside key={entry.manifest.id} className="banner" aria-label="Interrupted download">
        <p>
          The download of <strong>{entry.manifest.name}</strong> was interrupted {at}.
        </p>
        <button type="button" className="primary" onClick={() => props.onResume(entry)}>
          Resume
        </button>
      </aside>
    );
  });
}
