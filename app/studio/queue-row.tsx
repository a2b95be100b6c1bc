import type { ComponentProps } from 'react';
import { formatSize } from '../../lib/contract/format';
import { parameterRanges, sizes } from '../../lib/contract/parameters';
import type { QueueEntry } from '../../lib/predictions/queue/queue';
import type { WaitingInput } from '../../lib/predictions/run-input';
import { useObjectUrl } from '../shared/browser';
import { Picture } from '../shared/icons';

/** A request that waits, with what can be done with it. */
export function QueueRow(props: {
  entry: QueueEntry;
  /** Its place among those that wait, as text. */
  place: string;
  dragged: boolean;
  edited: boolean;
  handle: Omit<ComponentProps<'button'>, 'children'>;
  onPauseAfter: (pauseAfter: boolean) => void;
  onEdit: () => void;
  onCancelEdit: () => void;
  onDuplicate: () => void;
  onRemove: () => void;
}) {
  const { entry, place, dragged, edited, handle } = props;
  const { input, pauseAfter } = entry;
  const { prompt } = input.parameters;
  return (
    <li className="queue-row" data-dragged={dragged || undefined}>
      <button
        type="button"
        className="queue-handle"
        aria-label={`Move: ${place}, ${prompt}`}
        aria-keyshortcuts="ArrowUp ArrowDown Home End"
        title="Drag it, or use the arrow keys, Home and End"
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
        {edited && (
          <p className="queue-facts">
            Its settings are in the form: change them, then save the changes there.
          </p>
        )}
      </div>
      <div className="actions">
        <button
          type="button"
          className="small"
          aria-pressed={pauseAfter}
          title="Nothing starts after this one until you run the queue again"
          onClick={() => props.onPauseAfter(!pauseAfter)}
        >
          Pause after this one
        </button>
        {edited ? (
          <button type="button" className="small" onClick={props.onCancelEdit}>
            Cancel the changes
          </button>
        ) : (
          <button type="button" className="small" onClick={props.onEdit}>
            Edit
          </button>
        )}
        <button type="button" className="small" onClick={props.onDuplicate}>
          Duplicate
        </button>
        <button type="button" className="small danger" onClick={props.onRemove}>
          Remove
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
    `${numberOf('duration')} s`,
    ...(profile === 'ultra-fast' ? ['Ultra-fast'] : []),
    `${numberOf('num_inference_steps')} steps`,
    `guidance ${numberOf('guidance_scale')}`,
    `shift ${numberOf('flow_shift')}`,
    seed < 0 ? 'random seed' : `seed ${seed}`,
  ].join(' · ');
}
