import type { ReactNode } from 'react';
import { formatBytes, formatPercent, type LibraryEntry } from '../../lib/contract';
import { t } from '../texts';
import '../texts/en/models';
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
    const { id, name } = entry.manifest;
    const strong = (inside: ReactNode) => <strong>{inside}</strong>;
    return (
      <aside key={id} className="banner split on-wash" aria-label={t('models.interruptedDownload')}>
        <p>
          {fraction === null
            ? t.rich('models.interruptedAfter', { name, bytes: formatBytes(bytesDone), strong })
            : t.rich('models.interruptedAt', { name, percent: formatPercent(fraction), strong })}
        </p>
        <button type="button" className="primary" onClick={() => props.onResume(entry)}>
          {t('models.resume')}
        </button>
      </aside>
    );
  });
}
