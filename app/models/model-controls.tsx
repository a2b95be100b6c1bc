import {
  adapterOffers,
  formatBytes,
  hasSafetyChecker,
  hasSources,
  isBundled,
  isWanted,
  type ModelEntry,
} from '../../lib/contract';
import { Button } from '../shared/button';
import { Link } from '../shared/link';
import { t } from '../texts';
import '../texts/en/models';
import type { ModelView } from './model-view';
import type { LibraryActions } from './use-library-actions';
import { precisionName } from './wording';

/** The buttons of a model: what its status allows. */
export function ModelControls(props: {
  entry: ModelEntry;
  view: ModelView;
  sharedChecker: string | null;
  busy: boolean;
  actions: LibraryActions;
}) {
  const { entry, view, sharedChecker, busy, actions } = props;
  const { manifest, origin, precision, stored } = entry;
  const { id } = manifest;
  const { status, bytesStored } = view;
  const isElsewhere = status === 'elsewhere';
  const active = status === 'downloading';
  const isStopped = status === 'paused' || status === 'failed';
  const idle = !isElsewhere && !active && !isStopped && status !== 'verifying';
  const fetchable = hasSources(manifest);
  const incomplete = entry.parts.some(
    ({ status: part, component }) =>
      part === 'absent' &&
      component !== 'safety_checker' &&
      // A part that the user declined is not missing.
      isWanted(manifest, component, entry.adapters),
  );
  const hasAdapters = adapterOffers(manifest).length > 0;
  const withoutChecker = entry.ready && !sharedChecker && !hasSafetyChecker(entry);
  const others = manifest.choices.filter((choice) => choice.precision !== precision);
  return (
    <div className="actions">
      {status === 'ready' && (
        <Link
          className={`button${origin === 'bundled' ? '' : ' primary'}`}
          href={`/?model=${encodeURIComponent(id)}`}
        >
          {t('models.makeVideo')}
        </Link>
      )}
      {idle && incomplete && fetchable && (
        <Button
          className={status === 'ready' ? undefined : 'primary'}
          disabled={busy}
          onClick={() => actions.openSheet(entry)}
        >
          {status === 'absent' ? t('models.download') : t('models.downloadRest')}
        </Button>
      )}
      {idle && withoutChecker && !incomplete && (
        <Button
          disabled={busy}
          onClick={() => actions.download(id, { precision: precision ?? manifest.precision })}
        >
          {t('models.downloadChecker')}
        </Button>
      )}
      {(active || isElsewhere) && (
        <Button disabled={isElsewhere} onClick={() => actions.pause(id)}>
          {t('models.pause')}
        </Button>
      )}
      {isStopped && (fetchable || isBundled(manifest)) && (
        <Button className="primary" disabled={busy} onClick={() => actions.resume(entry)}>
          {status === 'failed' ? t('common.tryAgain') : t('models.resume')}
        </Button>
      )}
      {(active || isStopped || isElsewhere) && (
        <Button disabled={isElsewhere} onClick={() => actions.askRemoval({ kind: 'download', id })}>
          {t('models.cancel')}
        </Button>
      )}
      {status === 'ready' &&
        idle &&
        fetchable &&
        others.map((choice) => (
          <Button
            key={choice.precision}
            disabled={busy}
            onClick={() => actions.openSheet(entry, { precision: choice.precision })}
          >
            {t('models.getIn', { precision: precisionName(manifest, choice.precision) })}
          </Button>
        ))}
      {status === 'ready' && idle && fetchable && hasAdapters && !incomplete && (
        <Button disabled={busy} onClick={() => actions.openSheet(entry)}>
          {t('models.chooseAdapter')}
        </Button>
      )}
      {stored.length > 0 && bytesStored > 0 && idle && (
        <Button disabled={busy} onClick={() => actions.verify(id)}>
          {t('models.checkBytes')}
        </Button>
      )}
      {idle && bytesStored > 0 && (
        <Button
          className="danger"
          disabled={busy}
          onClick={() => actions.askRemoval({ kind: 'files', id })}
        >
          {t('models.deleteBytes', { bytes: formatBytes(bytesStored) })}
        </Button>
      )}
      {origin === 'added' && idle && (
        <Button
          className="danger"
          disabled={busy}
          onClick={() => actions.askRemoval({ kind: 'model', id })}
        >
          {t('models.removeFromList')}
        </Button>
      )}
    </div>
  );
}
