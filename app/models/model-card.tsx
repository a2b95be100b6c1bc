import {
  demonstrationModel,
  type ErrorRecord,
  formatBytes,
  formatPercent,
  hasSafetyChecker,
  type LocalFile,
  type ModelEntry,
  type Precision,
} from '../../lib/contract';
import { Link } from '../shared/link';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { useId, useState } from 'react';
import { isConverted } from '../../lib/pipeline/installation';
import { Fact } from '../shared/fact';
import { Select } from '../shared/fields';
import { FilePicker } from './file-picker';
import { ModelControls } from './model-controls';
import { isActive, type ModelView, storedAdapters, viewModel } from './model-view';
import { Outcome } from './outcome';
import type { Said } from './page-state';
import { PartRow } from './part-row';
import type { LibraryActions } from './use-library-actions';
import { formatRelativeError, measureOf, pauseSentences, precisionName } from './wording';
import '../texts/en/serve';
import { formatDate } from '../texts/format';
import { Licence } from './licence';

/** One model: what it is, what of it is here, what is going on, and what can be done. */
export function ModelCard(props: {
  entry: ModelEntry;
  /** Name of another model whose safety checker serves this one; null without one. */
  sharedChecker: string | null;
  doing: string | undefined;
  done: Said | undefined;
  problem: ErrorRecord | undefined;
  actions: LibraryActions;
}) {
  const { entry, sharedChecker, doing, done, problem, actions } = props;
  const { manifest, parts, stored, origin } = entry;
  const view = viewModel(entry);
  const { status, pausedBy } = view;
  const active = isActive(status);
  const isElsewhere = status === 'elsewhere';
  const shown = active || status === 'paused' || status === 'failed';
  // The parts show the progress while they are downloaded, checked or wait for the network.
  const isShownByParts = active || pausedBy === 'network';
  // A problem that a part shows is not shown twice.
  const general = parts.some(({ error }) => error?.message === problem?.message)
    ? undefined
    : problem;
  const partRows = parts.map((part) => (
    <PartRow
      key={part.component}
      part={part}
      components={manifest.components}
      stored={stored.find(({ component }) => component === part.component)}
      steerable={shown && status !== 'verifying'}
      onPause={() => actions.pause(manifest.id, part.component)}
      onResume={() => actions.resume(entry, part.component)}
      onCancel={() => actions.cancel(manifest.id, part.component)}
    />
  ));
  return (
    <section className="panel model" id={manifest.id} aria-labelledby={`${manifest.id}-title`}>
      <div className="split baseline">
        <h2 id={`${manifest.id}-title`} tabIndex={-1}>
          {manifest.name}
        </h2>
        <p className="chip row muted text-l numbers" data-status={status}>
          {chipOf(view)}
        </p>
      </div>
      <p className="prose muted">
        {manifestText(manifest.description)}{' '}
        {manifest.id === demonstrationModel && (
          <Link href={`/models/${manifest.id}`}>{t('models.card')}</Link>
        )}
      </p>
      <ModelFacts entry={entry} view={view} sharedChecker={sharedChecker} />
      {isElsewhere && <p className="info">{t('models.elsewhere')}</p>}
      {pausedBy && <p className="info">{t(pauseSentences[pausedBy])}</p>}
      {(shown || isElsewhere) && (
        <div className="total stack gap-6">
          <progress
            aria-label={t('models.allParts', { name: manifest.name })}
            {...(view.fraction !== null && { value: view.fraction, max: 1 })}
            {...(view.fraction === null && !active && !isElsewhere && { value: 0, max: 1 })}
          />
          <p className="measure numbers">{measureOf(view, entry.bytesPerSecond)}</p>
        </div>
      )}
      {shown && <ul className="parts stack gap-14">{partRows}</ul>}
      <Outcome
        doing={isShownByParts ? undefined : doing || undefined}
        done={done}
        problem={general}
      />
      <ModelControls
        entry={entry}
        view={view}
        sharedChecker={sharedChecker}
        busy={doing !== undefined && !isShownByParts}
        actions={actions}
      />
      {!shown && !isElsewhere && parts.length > 0 && (
        <details className="more" open={parts.some(({ error }) => error) || undefined}>
          <summary>{stored.length > 0 ? t('models.partsAndSources') : t('models.parts')}</summary>
          <ul className="parts stack gap-14">{partRows}</ul>
        </details>
      )}
      {origin !== 'bundled' && !isElsewhere && !active && status !== 'ready' && (
        <LocalFiles entry={entry} onFiles={actions.importFiles} disabled={Boolean(doing)} />
      )}
    </section>
  );
}

function chipOf({ status, fraction, pausedBy }: ModelView): string {
  const state = status === 'paused' && pausedBy === 'interrupted' ? 'interrupted' : status;
  const isStill = state === 'ready' || state === 'partial' || state === 'absent';
  if (fraction === null || isStill) return t(`models.status.${state}`);
  return t(`models.statusAt.${state}`, { percent: formatPercent(fraction) });
}

/** For those who have the files already: they serve instead of the hub. */
function LocalFiles(props: {
  entry: ModelEntry;
  disabled: boolean;
  onFiles: (entry: ModelEntry, precision: Precision, files: readonly LocalFile[]) => void;
}) {
  const { entry, disabled, onFiles } = props;
  const { manifest } = entry;
  const [chosen, setChosen] = useState<Precision | null>(null);
  const precision = chosen ?? entry.precision ?? manifest.precision;
  const id = useId();
  return (
    <details className="more">
      <summary id={`${manifest.id}-local`}>{t('models.useLocal')}</summary>
      {manifest.choices.length > 1 && (
        <div className="field">
          <label htmlFor={id}>{t('models.keepAs')}</label>
          <Select
            id={id}
            value={precision}
            options={manifest.choices.map((choice) => [
              choice.precision,
              manifestText(choice.name),
            ])}
            onChange={setChosen}
          />
        </div>
      )}
      <FilePicker
        what={t('models.filesOf', { name: manifest.name })}
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        disabled={disabled}
        onFiles={(files) => onFiles(entry, precision, files)}
      >
        {t('models.localHint')}
      </FilePicker>
    </details>
  );
}

const origins = {
  bundled: 'models.comesWithKinora',
  listed: 'models.fromHub',
  added: 'models.addedByYou',
} as const;

/** What is known of a model, in short. */
function ModelFacts(props: {
  entry: ModelEntry;
  view: ModelView;
  /** Name of another model whose safety checker serves this one; null without one. */
  sharedChecker: string | null;
}) {
  const { entry, view, sharedChecker } = props;
  const { manifest, origin, precision, stored } = entry;
  const { bytesStored, verifiedAt, worst } = view;
  const types = [
    ...new Set(
      stored.filter(({ component }) => isConverted(component)).map(({ sourceType }) => sourceType),
    ),
  ];
  return (
    <dl className="facts">
      <Fact name={t('models.licence')}>
        <Licence {...manifest.licence} />
      </Fact>
      {/* It comes with the model: nothing is missing of one that is not here yet. */}
      {view.status !== 'absent' && (
        <Fact name={t('names.component.safety_checker.name')}>
          {hasSafetyChecker(entry)
            ? t('models.installed')
            : sharedChecker
              ? t('models.installedWith', { name: sharedChecker })
              : t(origin === 'bundled' ? 'models.builtInCheck' : 'models.missing')}
        </Fact>
      )}
      <Fact name={t('models.origin')}>{t(origins[origin])}</Fact>
      {precision && <Fact name={t('serve.precision')}>{precisionName(manifest, precision)}</Fact>}
      {storedAdapters(entry).map(({ name, licence }) => (
        <Fact key={name} name={t('models.adapter')}>
          {t.rich(
            licence.commercial ? 'models.adapterLicence' : 'models.adapterLicenceRestricted',
            {
              name,
              licence: () => <Licence {...licence} />,
            },
          )}
        </Fact>
      ))}
      {types.length > 0 && <Fact name={t('models.madeFrom')}>{types.join(', ')}</Fact>}
      {bytesStored > 0 && <Fact name={t('models.inBrowser')}>{formatBytes(bytesStored)}</Fact>}
      {stored.length > 0 && (
        <Fact name={t('models.largestError')}>
          {worst ? (
            <span title={worst.tensor}>{formatRelativeError(worst.relativeError)}</span>
          ) : (
            t('models.noError')
          )}
        </Fact>
      )}
      {verifiedAt && (
        <Fact name={t('models.verified')}>
          <span className="tick">✓</span> <time dateTime={verifiedAt}>{formatDay(verifiedAt)}</time>
        </Fact>
      )}
    </dl>
  );
}

function formatDay(iso: string): string {
  return formatDate(iso, { dateStyle: 'medium', timeStyle: 'short' });
}
