import { formatBytes, languageModelsOf, type ToolEntry } from '../../lib/contract';
import { Button } from '../shared/button';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import '../texts/en/settings';
import { type About, AddSource } from './add-source';
import { Licence } from './licence';
import { viewModel } from './model-view';
import { Outcome } from './outcome';
import { PartRow } from './part-row';
import type { LibraryActions } from './use-library-actions';

/** The language models that reword prompts, and the ways to add one. */
export function ToolSection(props: {
  tools: readonly ToolEntry[];
  about: (subject: string) => About;
  /** About the form. */
  adding: About;
  actions: LibraryActions;
}) {
  const { tools, about, adding, actions } = props;
  return (
    <section className="panel" id="optimiser" aria-labelledby="optimiser-title">
      <h2 id="optimiser-title">{t('models.optimizer')}</h2>
      <p className="field-hint">{t('models.optimizerHint')}</p>
      {tools.map((entry) => (
        <ToolCard
          key={entry.manifest.id}
          entry={entry}
          actions={actions}
          about={about(entry.manifest.id)}
        />
      ))}
      <details className="more">
        <summary>{t('models.otherTool')}</summary>
        <AddSource
          id="tool-address"
          label={t('models.toolAddress')}
          placeholder={t('models.toolExample')}
          submit={t('models.add')}
          what={t('models.filesOfTool')}
          accept=".gguf"
          about={adding}
          onAdd={actions.addTool}
        >
          {t('models.orDropTool')}
        </AddSource>
      </details>
    </section>
  );
}

/** The networks that finish videos. */
export function FinisherSection(props: {
  tools: readonly ToolEntry[];
  about: (subject: string) => About;
  actions: LibraryActions;
}) {
  const { tools, about, actions } = props;
  const others = languageModelsOf(tools);
  return (
    <section className="panel" id="finishing" aria-labelledby="finishing-title">
      <h2 id="finishing-title">{t('models.finishing')}</h2>
      <p className="field-hint">{t('models.finishingHint')}</p>
      {tools
        .filter((entry) => !others.includes(entry))
        .map((entry) => (
          <ToolCard
            key={entry.manifest.id}
            entry={entry}
            actions={actions}
            about={about(entry.manifest.id)}
          />
        ))}
    </section>
  );
}

/** One tool: size, licence, state, and what can be done. */
function ToolCard(props: { entry: ToolEntry; about: About; actions: LibraryActions }) {
  const { entry, about, actions } = props;
  const { manifest, origin, parts, stored, elsewhere } = entry;
  const { id, name, description, licence, sources } = manifest;
  const [part] = parts;
  if (!part) return null;
  const { status } = viewModel(entry);
  const isMoving = status === 'downloading' || status === 'verifying';
  const isStopped = status === 'paused' || status === 'failed';
  const isIdle = !isMoving && !isStopped && !elsewhere;
  const bytes = part.bytesTotal ?? sources[0]?.files[0]?.bytes;
  const busy = about.doing !== undefined && !isMoving;
  const shown = part.error?.message === about.problem?.message ? undefined : about.problem;
  return (
    <section className="item" id={id} aria-labelledby={`${id}-title`}>
      <div className="row between">
        <h3 id={`${id}-title`} tabIndex={-1}>
          {name}
        </h3>
        <p className="chip row muted text-l numbers" data-status={status}>
          {t(
            entry.ready
              ? 'models.status.ready'
              : isMoving || isStopped
                ? 'models.status.partial'
                : 'models.status.absent',
          )}
        </p>
      </div>
      <p className="field-hint">
        {manifestText(description)}{' '}
        {bytes !== undefined && `${t('models.sizeSentence', { bytes: formatBytes(bytes) })} `}
        {t.rich('models.licenceSentence', { licence: () => <Licence {...licence} /> })}
        {elsewhere && ` ${t('shared.otherTab')}`}
      </p>
      {(isMoving || isStopped || part.error) && (
        <ul className="parts stack gap-14">
          <PartRow
            part={part}
            components={[]}
            stored={stored[0]}
            steerable={status !== 'verifying' && !elsewhere}
            onPause={() => actions.pause(id)}
            onResume={() => actions.resume(entry)}
            onCancel={() => actions.cancel(id)}
          />
        </ul>
      )}
      <Outcome
        doing={isMoving ? undefined : about.doing || undefined}
        done={about.done}
        problem={shown}
      />
      <div className="actions">
        {isIdle && !entry.ready && sources.length > 0 && (
          <Button
            disabled={busy}
            onClick={() => actions.download(id, { precision: manifest.precision })}
          >
            {bytes === undefined
              ? t('models.download')
              : t('models.downloadBytes', { bytes: formatBytes(bytes) })}
          </Button>
        )}
        {isIdle && entry.ready && (
          <Button disabled={busy} onClick={() => actions.verify(id)}>
            {t('models.checkBytes')}
          </Button>
        )}
        {isIdle && (entry.ready || origin === 'added') && (
          <Button
            className="danger"
            disabled={busy}
            aria-label={t('settings.deleteNamed', { name })}
            onClick={() => actions.askRemoval({ kind: origin === 'added' ? 'model' : 'files', id })}
          >
            {t('models.delete')}
          </Button>
        )}
      </div>
    </section>
  );
}
