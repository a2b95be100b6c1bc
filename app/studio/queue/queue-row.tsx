import { type ComponentProps, Fragment } from 'react';
import {
  type Created,
  formatSize,
  type ModelEntry,
  switchesOn,
  type unusedParameters,
} from '../../../lib/contract';
import { resolveSampling, storedModel } from '../../../lib/pipeline/profiles';
import type { Waiting } from '../../../lib/predictions/store';
import { useObjectUrl } from '../../shared/browser';
import { Button } from '../../shared/button';
import { Picture } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/queue';
import { loraText } from '../result/video-facts';

/** A request that waits, with what can be done with it. */
export function QueueRow(props: {
  waiting: Waiting;
  facts: Facts;
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
  const { waiting, place, count, dragged, edited, handle } = props;
  const { parameters, pauseAfter = false } = waiting.prediction;
  const { prompt } = parameters;
  return (
    <li className="queue-row stack ruled on-surface" data-dragged={dragged || undefined}>
      <Button
        className="queue-handle"
        aria-label={t('queue.move', { place, count, prompt })}
        aria-keyshortcuts="ArrowUp ArrowDown Home End"
        title={t('queue.moveHint')}
        {...handle}
      >
        <span aria-hidden="true">⠿</span>
      </Button>
      <QueuePicture picture={waiting.source.thumbnail} />
      <div className="stack gap-2">
        <p className="queue-prompt clamp text-xl break" title={prompt}>
          {prompt}
        </p>
        <FactsLine facts={props.facts} differing={props.differing} />
        {edited && <p className="muted text-s numbers break">{t('queue.inForm')}</p>}
      </div>
      <div className="actions">
        <Button
          className="small"
          aria-pressed={pauseAfter}
          title={t('queue.pauseAfterHint')}
          onClick={() => props.onPauseAfter(!pauseAfter)}
        >
          {t('queue.pauseAfter')}
        </Button>
        {edited ? (
          <Button className="small" onClick={props.onCancelEdit}>
            {t('queue.cancelChanges')}
          </Button>
        ) : (
          <Button className="small" onClick={props.onEdit}>
            {t('queue.edit')}
          </Button>
        )}
        <Button className="small" onClick={props.onDuplicate}>
          {t('queue.duplicate')}
        </Button>
        <Button className="small danger" onClick={props.onRemove}>
          {t('queue.remove')}
        </Button>
      </div>
    </li>
  );
}

/** The small picture of a row. */
export function QueuePicture({ picture }: { picture: Blob | undefined }) {
  const url = useObjectUrl(picture);
  return (
    <span className="queue-picture clip wide on-sunken">{url && <Picture src={url} alt="" />}</span>
  );
}

/** What a request asks for, by names; what is absent is as usual, or not used. */
export type Facts = ReadonlyMap<string, string>;

/** @param models in which it may have its model */
export function factsOf({ prediction, source }: Waiting, models: readonly ModelEntry[]): Facts {
  const { parameters, profile, options } = prediction;
  const model = models.find(({ manifest }) => manifest.id === prediction.model);
  const applied = appliedOf(prediction, model);
  const steps = applied?.steps ?? parameters.num_inference_steps;
  const used = (name: (typeof unusedParameters)[number], text: string) =>
    applied?.unused.includes(name) ? [] : ([[name, text]] as const);
  const { size, negative_prompt: negative, seed, ...settings } = parameters;
  const loras = loraText(parameters);
  const { lastImage: end } = options;
  return new Map([
    ['image', source.imageName],
    ['size', formatSize(size)],
    ['duration', t('common.seconds', { seconds: settings.duration })],
    ...switchesOn(settings).map((name) => [name, t(`queue.${name}`)] as const),
    ...(end ? ([['end', endText(end.name, settings.last_image_at)]] as const) : []),
    ...(profile === 'ultra-fast' ? ([['speed', t('names.profile.ultra-fast')]] as const) : []),
    ['steps', t('queue.steps', { steps })],
    ...used('guidance_scale', t('queue.guidance', { guidance: settings.guidance_scale })),
    ...used('flow_shift', t('queue.shift', { shift: settings.flow_shift })),
    ['seed', seed < 0 ? t('queue.randomSeed') : t('queue.seed', { seed })],
    ...(loras ? ([['loras', loras]] as const) : []),
    ...(negative ? ([['negative', t('queue.without', { negative })]] as const) : []),
  ]);
}

/** What its profile makes of it; null where its model cannot tell. */
function appliedOf({ profile, parameters, options }: Created, model: ModelEntry | undefined) {
  try {
    return model?.ready
      ? resolveSampling(storedModel(model), profile, parameters, options).applied
      : null;
  } catch {
    return null; // The run will say what it lacks.
  }
}

/** The end image, and its second where it is not the end. */
function endText(name: string, second: number | undefined): string {
  return second === undefined ? t('queue.end', { name }) : t('queue.endAt', { name, second });
}

/** Names of the facts in which the requests that wait differ. */
export function differingFacts(all: readonly Facts[]): ReadonlySet<string> {
  const [first, ...others] = all;
  const names = new Set(all.flatMap((facts) => [...facts.keys()]));
  return new Set(
    [...names].filter((name) => others.some((facts) => facts.get(name) !== first?.get(name))),
  );
}

/** What a request asks for; what distinguishes it from the others stands out. */
function FactsLine({ facts, differing }: { facts: Facts; differing: ReadonlySet<string> }) {
  // The name of the image says something only where there are others.
  const shown = [...facts].filter(([name]) => name !== 'image' || differing.has(name));
  return (
    <p className="muted text-s numbers break">
      {shown.map(([name, text], index) => (
        <Fragment key={name}>
          {index > 0 && ' · '}
          {differing.has(name) ? <strong className="ink">{text}</strong> : text}
        </Fragment>
      ))}
    </p>
  );
}
