import Link from 'next/link';
import {
  demonstrationModel,
  type ErrorRecord,
  formatPercent,
  type ModelEntry,
} from '../../lib/contract';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { LocalFiles } from './local-files-section';
import { ModelControls } from './model-controls';
import { ModelFacts } from './model-facts';
import { isActive, type ModelView, viewModel } from './model-view';
import { Outcome } from './outcome';
import { PartRow } from './part-row';
import type { LibraryActions } from './use-library-actions';
import { measureOf, pauseSentences } from './wording';

/** One model: what it is, what of it is here, what is going on, and what can be done. */
export function ModelCard(props: {
  entry: ModelEntry;
  /** Name of another model whose safety checker serves this one; null without one. */
  sharedChecker: string | null;
  doing: string | undefined;
  done: string | undefined;
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
          <Link href={`/models/${manifest.id}`} prefetch={false}>
            {t('models.card')}
          </Link>
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
