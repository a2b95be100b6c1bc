import { type Dispatch, type ReactNode, useEffect } from 'react';
import {
  formatBytes,
  formatPercent,
  hasSafetyChecker,
  type LibraryEntry,
  type LibrarySnapshot,
  languageModelsOf,
  type ModelEntry,
  type PartState,
} from '../../lib/contract';
import { Button } from '../shared/button';
import { later } from '../shared/later';
import { Link } from '../shared/link';
import { LiveText } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/models';
import { type About, AddSource } from './add-source';
import { lineSpeed } from './download-plan';
import { DownloadSheet } from './download-sheet';
import { HubSetting } from './hub-setting';
import { LoraLibrary } from './lora-library';
import { ModelCard } from './model-card';
import { viewModel } from './model-view';
import { type PageAction, type PageState, subjects } from './page-state';
import { RemovalDialog } from './removal-dialog';
import { StorageBar } from './storage-bar';
import { FinisherSection, ToolSection } from './tool-section';
import { useGpuMemory } from './use-gpu-memory';
import type { LibraryActions } from './use-library-actions';
import { announce } from './wording';

// It asks what the device can do, which the rest of the page does not wait for.
const ModelChoice = later(async () => (await import('./model-choice')).ModelChoice);

/** The order for a newcomer: the real models, then added models, then the samples. */
const order: readonly ModelEntry['origin'][] = ['listed', 'added', 'bundled'];

/** The models page once the library is there. */
export function LibraryView(props: {
  library: LibrarySnapshot;
  page: PageState;
  change: Dispatch<PageAction>;
  actions: LibraryActions;
}) {
  const { library, page, change, actions } = props;
  const { sheet, removal } = page;
  const { gpu, measure } = useGpuMemory();
  const models = library.models
    .filter(({ hidden }) => !hidden)
    .sort((a, b) => order.indexOf(a.origin) - order.indexOf(b.origin));
  const listed = models.filter(({ origin }) => origin === 'listed');
  const { storage } = library;
  const speed = Math.max(...[...models, ...library.tools].map((entry) => entry.bytesPerSecond), 0);
  useEffect(() => {
    if (speed > 0) lineSpeed.set(Math.round(speed));
  }, [speed]);
  const offered = models.find(({ manifest }) => manifest.id === sheet?.model);
  const about = (subject: string) => ({
    doing: page.doing[subject],
    done: page.done[subject],
    problem: page.problems[subject],
  });
  return (
    <>
      <InterruptedBanner models={[...models, ...library.tools]} onResume={actions.resume} />
      {listed.length > 0 && (
        <ModelChoice
          models={listed}
          small={models.find(({ origin }) => origin === 'bundled')}
          free={storage.atLeast ? Number.POSITIVE_INFINITY : storage.quota - storage.usage}
          memory={gpu}
          onMeasure={measure}
          onDownload={(entry, precision) => actions.openSheet(entry, { precision })}
        />
      )}
      <div className="columns stack gap-24">
        <div className="column stack gap-24">
          {models.map((entry) => (
            <ModelCard
              key={entry.manifest.id}
              entry={entry}
              actions={actions}
              sharedChecker={checkerOf(models, entry)}
              {...about(entry.manifest.id)}
            />
          ))}
          <FinisherSection about={about} actions={actions} tools={library.tools} />
          <LoraLibrary library={library} actions={actions} about={about(subjects.addLora)} />
          <ToolSection
            about={about}
            actions={actions}
            tools={languageModelsOf(library.tools)}
            adding={about(subjects.addTool)}
          />
        </div>
        <div className="column stack gap-24">
          <StorageBar storage={library.storage} onPersist={actions.persist}>
            <Link href="/settings">{t('models.whatTakesIt')}</Link>
          </StorageBar>
          <AddModel about={about(subjects.addModel)} actions={actions} />
          <HubSetting
            library={library}
            {...about(subjects.hub)}
            onSave={actions.setHub}
            onToken={actions.setHubToken}
          />
        </div>
      </div>
      {sheet && offered && (
        <DownloadSheet
          sheet={sheet}
          gpu={gpu}
          onMeasure={measure}
          entry={offered}
          hub={library.hub}
          onWanted={(scope) => actions.openSheet(offered, scope)}
          onDownload={(scope, accepts) => {
            actions.download(sheet.model, scope, accepts);
            // The button that opened the sheet goes away; its model stays.
            requestAnimationFrame(() => document.getElementById(`${sheet.model}-title`)?.focus());
          }}
          onClose={() => change({ type: 'sheetClosed' })}
        />
      )}
      {removal && (
        <RemovalDialog
          removal={removal}
          library={library}
          onConfirm={actions.remove}
          onClose={() => change({ type: 'removalAnswered' })}
        />
      )}
      {[...models, ...library.tools]
        .filter(({ origin, parts }) => origin !== 'bundled' || parts.some(isMoving))
        .map((entry) => (
          <LiveText key={entry.manifest.id} {...announce(entry)} />
        ))}
    </>
  );
}

function isMoving({ status }: PartState): boolean {
  return status !== 'absent' && status !== 'complete';
}

/** Name of another model whose safety checker serves this one too; null without one. */
function checkerOf(models: readonly ModelEntry[], { manifest }: ModelEntry): string | null {
  const other = models.find((one) => one.manifest.id !== manifest.id && hasSafetyChecker(one));
  return other?.manifest.name ?? null;
}

/** Another model: by its address on the hub, or from this computer. */
function AddModel({ about, actions }: { about: About; actions: LibraryActions }) {
  return (
    <section className="panel" aria-labelledby="add-model-title">
      <h2 id="add-model-title">{t('models.addModel')}</h2>
      <p className="field-hint">{t('models.addModelHint')}</p>
      <AddSource
        id="model-address"
        label={t('models.hubAddressOf')}
        placeholder={t('models.repositoryExample')}
        submit={t('models.lookUp')}
        what={t('models.filesOfModel')}
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        about={about}
        onAdd={actions.addModel}
      >
        {t('models.orDropModel')}
      </AddSource>
    </section>
  );
}

/** After a reload or a crash: what was under way, and one button to go on. */
function InterruptedBanner(props: {
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
        <Button className="primary" onClick={() => props.onResume(entry)}>
          {t('models.resume')}
        </Button>
      </aside>
    );
  });
}
