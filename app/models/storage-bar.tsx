import type { ReactNode } from 'react';
import { formatBytes, type StorageReport } from '../../lib/contract';
import { Button } from '../shared/button';
import { t } from '../texts';
import '../texts/en/models';

/** How full the browser's storage is, and whether the browser promised to keep it. */
export function StorageBar(props: {
  storage: StorageReport;
  onPersist: () => void;
  children: ReactNode;
}) {
  const { usage, quota, atLeast, persistent } = props.storage;
  const free = formatBytes(Math.max(0, quota - usage));
  return (
    <section className="panel storage" aria-labelledby="storage-title">
      <h2 id="storage-title">{t('models.storage')}</h2>
      <progress
        aria-label={t('models.storageInUse')}
        value={quota > 0 ? Math.min(1, usage / quota) : 0}
        max={1}
      />
      <p className="measure numbers">
        {t('models.storageUse', {
          used: formatBytes(usage),
          free: atLeast ? t('models.atLeast', { bytes: free }) : free,
        })}
      </p>
      <p className="field-hint">
        {persistent ? t('models.persistent') : t('models.notPersistent')}
      </p>
      {!persistent && (
        <div className="actions">
          <Button onClick={props.onPersist}>{t('models.askToKeep')}</Button>
        </div>
      )}
      {props.children}
    </section>
  );
}
