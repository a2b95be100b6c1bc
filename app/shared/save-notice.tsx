'use client';

import { t } from '../texts';
import { Button } from './button';
import { Link } from './link';
import { Problem } from './messages';
import { setUnsaved, type UnsavedVideos } from './unsaved-videos';

/** Finished videos that could not be saved into the user's folder. */
export function SaveNotice({ ids, error, denied, retry }: UnsavedVideos) {
  return (
    <div className="page-width mt-8" role="alert">
      <Problem error={error}>
        <p>{t('shared.unsaved', { count: ids.length })}</p>
        <Button onClick={() => void retry()}>
          {t(denied ? 'shared.allowAndSave' : 'common.tryAgain')}
        </Button>
        <Link className="button" href="/settings">
          {t('shared.anotherFolder')}
        </Link>
        <Button onClick={() => setUnsaved(null)}>{t('shared.close')}</Button>
      </Problem>
    </div>
  );
}
