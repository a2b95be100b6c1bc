import type { ReactNode } from 'react';
import { formatBytes } from '../../lib/contract/format';
import type { StorageReport } from '../../lib/contract/library';

/** How full the browser's storage is, and whether the browser promised to keep it. */
export function StorageBar(props: {
  storage: StorageReport;
  onPersist: () => void;
  children: ReactNode;
}) {
  const { usage, quota, atLeast, persistent } = props.storage;
  return (
    <section className="panel storage" aria-labelledby="storage-title">
      <h2 id="storage-title">Storage</h2>
      <progress
        aria-label="Storage in use"
        value={quota > 0 ? Math.min(1, usage / quota) : 0}
        max={1}
      />
      <p className="measure">
        {formatBytes(usage)} in use, {atLeast && 'at least '}
        {formatBytes(Math.max(0, quota - usage))} free
      </p>
      <p className="field-hint">
        {persistent
          ? 'Persistent: the browser deletes nothing by itself.'
          : 'Not persistent: when the disk gets full, the browser may delete models and videos.'}
      </p>
      {!persistent && (
        <div className="actions">
          <button type="button" onClick={props.onPersist}>
            Ask the browser to keep it
          </button>
        </div>
      )}
      {props.children}
    </section>
  );
}
