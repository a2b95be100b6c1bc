import { componentTexts, formatBytes, formatPercent } from '../../lib/contract/format';
import type { PartState, StoredComponent } from '../../lib/contract/library';
import type { ComponentId } from '../../lib/contract/manifest';
import { isConverted } from '../../lib/pipeline/installation';
import { amountOf, fractionOf } from './model-view';
import { LibraryProblem } from './outcome';
import { formatRelativeError, precisionNames } from './wording';

/** One part of a model: how far it is, what it is made of, and its controls. */
export function PartRow(props: {
  part: PartState;
  stored: StoredComponent | undefined;
  /** Whether it can be paused, resumed or cancelled. */
  steerable: boolean;
  onPause: () => void;
  onResume: () => void;
  onCancel: () => void;
}) {
  const { part, stored, steerable } = props;
  const { component, status, bytesDone, bytesTotal, notice, error } = part;
  const { name, purpose } = componentTexts[component];
  const fraction = fractionOf(bytesDone, bytesTotal);
  const moving = status === 'downloading' || status === 'verifying';
  const active = moving || status === 'waiting';
  const isStopped = status === 'paused' || status === 'failed';
  return (
    <li className="part" data-status={status}>
      <div className="part-head">
        <span className="part-name">{name}</span>
        <span className="part-state">{stateOf(part)}</span>
      </div>
      <div className="part-foot">
        <p className="field-hint">{stored ? madeOf(stored) : purpose}</p>
        {steerable && (active || isStopped) && (
          <div className="actions small">
            {active && status !== 'verifying' && (
              <button type="button" aria-label={`Pause ${name}`} onClick={props.onPause}>
                Pause
              </button>
            )}
            {isStopped && (
              <button type="button" aria-label={`Resume ${name}`} onClick={props.onResume}>
                {status === 'failed' ? 'Try again' : 'Resume'}
              </button>
            )}
            <button type="button" aria-label={`Cancel ${name}`} onClick={props.onCancel}>
              Cancel
            </button>
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
      {notice && <p className="notice-line">{notice}</p>}
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
      return bytesTotal === null ? 'Not here' : formatBytes(bytesTotal);
    case 'waiting':
      return 'Waits for its turn';
    case 'downloading':
      return `${amountOf(bytesDone, bytesTotal)}${percent}`;
    case 'paused':
      return `Paused${percent}`;
    case 'verifying':
      return 'Checking …';
    case 'complete':
      return `✓ ${formatBytes(bytesStored)}`;
    case 'failed':
      return `Stopped${percent}`;
  }
}

/** The parts whose linear layers are kept in the precision that was chosen. */
const quantised: readonly ComponentId[] = ['transformer', 'text_encoder'];

/** `From Q8_0, kept as 8-bit, largest error 0.24 %`. */
function madeOf({ sourceType, precision, worst, component }: StoredComponent): string {
  if (!isConverted(component)) return componentTexts[component].purpose;
  const kept = quantised.includes(component) ? `, kept as ${precisionNames[precision]}` : '';
  const error =
    worst && worst.relativeError > 0
      ? `largest error ${formatRelativeError(worst.relativeError)}`
      : 'exact';
  return `From ${sourceType}${kept}, ${error}`;
}
