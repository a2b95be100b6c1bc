import { type ComponentProps, Fragment } from 'react';
import { formatSize } from '../../../lib/contract/format';
import { parameterRanges, sizes, switchesOn } from '../../../lib/contract/parameters';
import type { QueueEntry } from '../../../lib/predictions/queue/queue';
import type { WaitingInput } from '../../../lib/predictions/run-input';
import { useObjectUrl } from '../../shared/browser';
import { Picture } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/queue';
import { loraText } from '../result/video-facts';

/** A request that waits, with what can be done with it. */
export function QueueRow(props: {
  entry: QueueEntry;
  /** Names of the facts in which those that wait differ. */
  differing: ReadonlySet<string>;
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
        <Facts input={input} differing={props.differing} />
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

/** What a request asks for, by names; what is absent is as usual. */
function factsOf({
  parameters,
  profile,
  imageName,
  options,
}: WaitingInput): ReadonlyMap<string, string> {
  const { size = sizes[0], negative_prompt: negative, ...settings } = parameters;
  // The schema would bring a large script.
  const numberOf = (name: keyof typeof parameterRanges) =>
    settings[name] ?? parameterRanges[name].default;
  const seed = numberOf('seed');
  const loras = loraText(parameters);
  const { lastImage: end } = options;
  return new Map([
    ['image', imageName],
    ['size', formatSize(size)],
    ['duration', t('common.seconds', { seconds: numberOf('duration') })],
    ...switchesOn(settings).map((name) => [name, t(`queue.${name}`)] as const),
    ...(end ? ([['end', endText(end.name, settings.last_image_at)]] as const) : []),
    ...(profile === 'ultra-fast' ? ([['speed', t('names.profile.ultra-fast')]] as const) : []),
    ['steps', t('queue.steps', { steps: numberOf('num_inference_steps') })],
    ['guidance', t('queue.guidance', { guidance: numberOf('guidance_scale') })],
    ['shift', t('queue.shift', { shift: numberOf('flow_shift') })],
    ['seed', seed < 0 ? t('queue.randomSeed') : t('queue.seed', { seed })],
    ...(loras ? ([['loras', loras]] as const) : []),
    ...(negative ? ([['negative', t('queue.without', { negative })]] as const) : []),
  ]);
}

/** The end image, and its second where it is not the end. */
function endText(name: string, second: number | undefined): string {
  return second === undefined ? t('queue.end', { name }) : t('queue.endAt', { name, second });
}

/** Names of the facts in which the requests that wait differ. */
export function differingFacts(entries: readonly QueueEntry[]): ReadonlySet<string> {
  const all = entries.map(({ input }) => factsOf(input));
  const [first, ...others] = all;
  const names = new Set(all.flatMap((facts) => [...facts.keys()]));
  return new Set(
    [...names].filter((name) => others.some((facts) => facts.get(name) !== first?.get(name))),
  );
}

/** What a request asks for; what distinguishes it from the others stands out. */
function Facts({ input, differing }: { input: WaitingInput; differing: ReadonlySet<string> }) {
  // The name of the image says something only where there are others.
  const shown = [...factsOf(input)].filter(([name]) => name !== 'image' || differing.has(name));
  return (
    <p className="queue-facts">
      {shown.map(([name, text], index) => (
        <Fragment key={name}>
          {index > 0 && ' · '}
          {differing.has(name) ? <strong>{text}</strong> : text}
        </Fragment>
      ))}
    </p>
  );
}
