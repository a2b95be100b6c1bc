import {
  formatBytes,
  formatPercent,
  type ModelComponent,
  type PartState,
  type StoredComponent,
} from '../../lib/contract';
import { isConverted } from '../../lib/pipeline/installation';
import { Button } from '../shared/button';
import { t } from '../texts';
import '../texts/en/models';
import { fractionOf } from './model-view';
import { LibraryProblem } from './outcome';
import { amountOf, componentText, formatRelativeError, precisionNames } from './wording';

/** One part of a model: how far it is, what it is made of, and its controls. */
export function PartRow(props: {
  part: PartState;
  /** Of the manifest. */
  components: readonly ModelComponent[];
  stored: StoredComponent | undefined;
  /** Whether it can be paused, resumed or cancelled. */
  steerable: boolean;
  onPause: () => void;
  onResume: () => void;
  onCancel: () => void;
}) {
  const { part, components, stored, steerable } = props;
  const { component, status, bytesDone, bytesTotal, notice, error } = part;
  const name = componentText(component, 'name', components);
  const fraction = fractionOf(bytesDone, bytesTotal);
  const moving = status === 'downloading' || status === 'verifying';
  const active = moving || status === 'waiting';
  const isStopped = status === 'paused' || status === 'failed';
  return (
    <li className="part stack gap-4" data-status={status}>
      <div className="split baseline">
        <span className="text-xl strong">{name}</span>
        <span className="part-state muted text-m numbers">{stateOf(part)}</span>
      </div>
      <div className="split">
        <p className="field-hint">
          {stored ? madeOf(stored, components) : componentText(component, 'purpose', components)}
        </p>
        {steerable && (active || isStopped) && (
          <div className="actions small">
            {active && status !== 'verifying' && (
              <Button aria-label={t('models.pauseName', { name })} onClick={props.onPause}>
                {t('models.pause')}
              </Button>
            )}
            {isStopped && (
              <Button aria-label={t('models.resumeName', { name })} onClick={props.onResume}>
                {status === 'failed' ? t('common.tryAgain') : t('models.resume')}
              </Button>
            )}
            <Button aria-label={t('models.cancelName', { name })} onClick={props.onCancel}>
              {t('models.cancel')}
            </Button>
          </div>
        )}
      </div>
      {(active || isStopped) && (
        <progress
          aria-label={name}
          // Without a size there is nothing to measure; only what moves is shown moving.
          {...(fraction !== null
            ? { value: fraction, max: 1 }
            : moving
              ? {}
              : { value: 0, max: 1 })}
        />
      )}
      {notice && <p className="notice-line text-m">{notice}</p>}
      {error && <LibraryProblem error={error} />}
    </li>
  );
}

function stateOf(part: PartState): string {
  const { status, bytesDone, bytesTotal, bytesStored } = part;
  const fraction = fractionOf(bytesDone, bytesTotal);
  const percent = fraction === null ? '' : ` · ${formatPercent(fraction)}`;
  switch (status) {
    case 'absent':
      return bytesTotal === null ? t('models.notHere') : formatBytes(bytesTotal);
    case 'waiting':
      return t('models.waits');
    case 'downloading':
      return `${amountOf(bytesDone, bytesTotal)}${percent}`;
    case 'paused':
      return `${t('models.status.paused')}${percent}`;
    case 'verifying':
      return `${t('models.checking')}${percent}`;
    case 'complete':
      return `✓ ${formatBytes(bytesStored)}`;
    case 'failed':
      return `${t('models.status.failed')}${percent}`;
  }
}

/** `From Q8_0, kept as 8-bit, largest error 0.24 %`. */
function madeOf(
  { sourceType, precision, worst, component }: StoredComponent,
  components: readonly ModelComponent[],
): string {
  if (!isConverted(component)) return componentText(component, 'purpose', components);
  const error =
    worst && worst.relativeError > 0
      ? t('models.largestErrorOf', { error: formatRelativeError(worst.relativeError) })
      : t('models.exact');
  const values = { source: sourceType, precision: t(precisionNames[precision]), error };
  // Its linear layers are kept in the precision that was chosen.
  const quantised = components.some(({ id, precisions }) => id === component && precisions.length);
  return quantised ? t('models.madeKept', values) : t('models.made', values);
}
