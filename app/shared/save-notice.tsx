'use client';

import './save-notice.css';
import Link from 'next/link';
import { t } from '../texts';
import { Problem } from './messages';
import { setUnsaved, useUnsaved } from './unsaved-videos';

/** Finished videos that could not be saved into the user's folder; nothing while there are none. */
export function SaveNotice() {
  const unsaved = useUnsaved();
  if (!unsaved) return null;
  const { ids, error, denied, retry } = unsaved;
  return (
    <div className="save-notice" role="alert">
      <Problem error={error}>
        <p>{t('shared.unsaved', { count: ids.length })}</p>
        <button type="button" onClick={() => void retry()}>
          {t(denied ? 'shared.allowAndSave' : 'common.tryAgain')}
        </button>
        <Link className="button" href="/settings" prefetch={false}>
          {t('shared.anotherFolder')}
        </Link>
        <button type="button" onClick={() => setUnsaved(null)}>
          {t('shared.close')}
        </button>
      </Problem>
    </div>
  );
}
