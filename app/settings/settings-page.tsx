'use client';

import { useReducer } from 'react';
import { useLibrary } from '../library';
import { HubSetting } from '../models/hub-setting';
import { LibraryStatus } from '../models/library-status';
import { changePage, initialPage, subjects } from '../models/page-state';
import { RemovalDialog } from '../models/removal-dialog';
import { StorageBar } from '../models/storage-bar';
import { useLibraryActions } from '../models/use-library-actions';
import { Page } from '../shared/app-page';
import { changeDevice, useDevice } from '../shared/device';
import { BackendField, MemoryField, Switch } from '../shared/fields';
import { type GpuState, shownBackend, useGpu } from '../shared/gpu';
import { t } from '../texts';
import '../texts/en/settings';
import { Appearance } from './appearance';
import { FinishedSection } from './finished-section';
import { GpuSection } from './gpu-section';
import { StoredKinds } from './stored-kinds';

/** What is chosen once, for this browser. */
export function SettingsPage() {
  const library = useLibrary();
  const { gpu } = useGpu();
  const [page, change] = useReducer(changePage, initialPage);
  const actions = useLibraryActions(change);
  const { removal, doing, done, problems } = page;
  const { hub } = subjects;
  return (
    <Page here="/settings" name="settings.title" className="page models settings">
      <div className="columns stack gap-24">
        <div className="column stack gap-24">
          <Appearance />
          <Computing gpu={gpu} />
          <FinishedSection />
          <GpuSection gpu={gpu} />
        </div>
        <div className="column stack gap-24">
          <LibraryStatus library={library} />
          {library.status === 'ready' && (
            <>
              <StorageBar storage={library.snapshot.storage} onPersist={actions.persist}>
                <StoredKinds library={library.snapshot} page={page} actions={actions} />
              </StorageBar>
              <HubSetting
                open
                library={library.snapshot}
                doing={doing[hub]}
                done={done[hub]}
                problem={problems[hub]}
                onSave={actions.setHub}
                onToken={actions.setHubToken}
              />
            </>
          )}
        </div>
      </div>
      {removal && library.status === 'ready' && (
        <RemovalDialog
          removal={removal}
          library={library.snapshot}
          onConfirm={actions.remove}
          onClose={() => change({ type: 'removalAnswered' })}
        />
      )}
    </Page>
  );
}

/** What computes the videos of this browser; the studio has the same fields. */
function Computing({ gpu }: { gpu: GpuState }) {
  const device = useDevice();
  return (
    <section className="panel" aria-labelledby="computing-title">
      <h2 id="computing-title">{t('settings.computing')}</h2>
      <p className="field-hint">{t('settings.computingHint')}</p>
      <BackendField
        backend={shownBackend(device, gpu)}
        onChange={(name) => changeDevice({ backend: name })}
      />
      <MemoryField device={device} onChange={changeDevice} />
      <Switch
        name={t('settings.safetyCheck')}
        hint={t('settings.safetyCheckHint')}
        checked={device.safetyChecker}
        onChange={(safetyChecker) => changeDevice({ safetyChecker })}
      />
    </section>
  );
}
