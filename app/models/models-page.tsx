'use client';

import { useEffect, useReducer } from 'react';
import { useLibrary } from '../library';
import { SiteHeader } from '../shared/site-header';
import { t } from '../texts';
import { LibraryStatus } from './library-status';
import { LibraryView } from './library-view';
import { changePage, initialPage } from './page-state';
import { useLibraryActions } from './use-library-actions';

/** What is in this browser, and how to get more: models, LoRAs, storage. */
export function ModelsPage() {
  const library = useLibrary();
  const [page, change] = useReducer(changePage, initialPage);
  const actions = useLibraryActions(change);
  // A download survives being closed; a video in the making does not.
  useDropGuard();
  return (
    <>
      <SiteHeader here="/models" />
      <main id="main" tabIndex={-1} className="page stack page-width gap-16 models">
        <h1>{t('common.models')}</h1>
        <LibraryStatus library={library} />
        {library.status === 'ready' && (
          <LibraryView library={library.snapshot} page={page} change={change} actions={actions} />
        )}
      </main>
    </>
  );
}

/** A file dropped beside its place must not replace the page. */
function useDropGuard(): void {
  useEffect(() => {
    const keep = (event: DragEvent) => event.preventDefault();
    window.addEventListener('dragover', keep);
    window.addEventListener('drop', keep);
    return () => {
      window.removeEventListener('dragover', keep);
      window.removeEventListener('drop', keep);
    };
  }, []);
}
