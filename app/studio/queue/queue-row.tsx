import type { ComponentProps } from 'react';
import { formatSize } from '../../../lib/contract/format';
import { parameterRanges, sizes } from '../../../lib/contract/parameters';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import type { WaitingInput } from '../../../lib/predictions/run-input';
import { useObjectUrl } from '../../shared/browser';
import { Picture } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/queue';

/** A request that waits, with what can be done with it. */
export function QueueRow(props: {
  entry: QueueEntry;
  /** Its place among those that wait, from 1. */
  place: number;
  /** How many wait. */
  count: number;
  dragged: boolean;
  edited: boolean;
  handle: Omit<ComponentProps<'button'>, 'children'>;
  onPauseAfter: (pauseAfter: boolean) => void;
  onEdit: () => void;
  onCancelEdit: () => void;
  onDuplicate: () => void;
  onRemove: () => void;
}) {
  const { entry, place, count, dragged, edited, handle } = props;
  const { input, pauseAfter } = entry;
  const { prompt } = input.parameters;
  return (
    <li className="queue-row" data-dragged={dragged || undefined}>
      <button
        type="button"
        className="queue-handle"
        aria-label={t('queue.move', { place, count, prompt })}
        aria-keyshortcuts="ArrowUp ArrowDown Home End"
        title={t('queue.moveHint')}
        {...handle}
      >
        <span aria-hidden="true">⠿</span>
      </button>
      <QueuePicture picture={entry.thumbnail} />
      <div className="queue-text">
        <p className="queue-prompt" title={prompt}>
          {prompt}
        </p>
        <p className="queue-facts">{factsOf(input)}</p>
        {edited && <p className="queue-facts">{t('queue.inForm')}</p>}
      </div>
      <div className="actions">
        <button
          type="button"
          className="small"
          aria-pressed={pauseAfter}
          title={t('queue.pauseAfterHint')}
          onClick={() => props.onPauseAfter(!pauseAfter)}
        >
          {t('queue.pauseAfter')}
        </button>
        {edited ? (
          <button type="button" className="small" onClick={props.onCancelEdit}>
            {t('queue.cancelChanges')}
          </button>
        ) : (
          <button type="button" className="small" onClick={props.onEdit}>
            {t('queue.edit')}
          </button>
        )}
        <button type="button" className="small" onClick={props.onDuplicate}>
          {t('queue.duplicate')}
        </button>
        <button type="button" className="small danger" onClick={props.onRemove}>
          {t('queue.remove')}
        </button>
      </div>
    </li>
  );
}

/** The small picture of a row. */
export function QueuePicture({ picture }: { picture: Blob | undefined }) {
  const url = useObjectUrl(picture);
  return <span className="queue-picture">{url && <Picture src={url} alt="" />}</span>;
}

/** What distinguishes a request from the others. */
function factsOf({ parameters, profile }: WaitingInput): string {
  const { size = sizes[0], ...asked } = parameters;
  // The schema would bring a large script.
  const numberOf = (name: keyof typeof parameterRanges) =>
    asked[name] ?? parameterRanges[name].default;
  const seed = numberOf('seed');
  return [
    formatSize(size),
    t('common.seconds', { seconds: numberOf('duration') }),
    ...(profile === 'ultra-fast' ? [t('names.profile.ultra-fast')] : []),
    t('queue.steps', { steps: numberOf('num_inference_steps') }),
    t('queue.guidance', { guidance: numberOf('guidance_scale') }),
    t('queue.shift', { shift: numberOf('flow_shift') }),
    seed < 0 ? t('queue.randomSeed') : t('queue.seed', { seed }),
  ].join(' · ');
}
