'use client';

import { useReducer } from 'react';
import { useLibrary } from '../library';
import { Page } from '../shared/app-page';
import { useWindowEvent } from '../shared/browser';
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
  // A file dropped beside its place must not replace the page.
  useWindowEvent('dragover', prevent);
  useWindowEvent('drop', prevent);
  return (
    <Page here="/models" name="common.models" className="page models">
      <LibraryStatus library={library} />
      {library.status === 'ready' && (
        <LibraryView library={library.snapshot} page={page} change={change} actions={actions} />
      )}
    </Page>
  );
}

const prevent = (event: Event) => event.preventDefault();
