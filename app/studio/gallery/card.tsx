import { type MouseEvent, memo, type RefCallback, useEffect, useId, useState } from 'react';
import { type Completed, formatSize, type Prediction } from '../../../lib/contract';
import { getRunner } from '../../runner';
import { Button } from '../../shared/button';
import { ExpandIcon, Picture, StarIcon } from '../../shared/icons';
import { blurReason, isInputFlagged } from '../../shared/safety-text';
import { errorTexts, t } from '../../texts';
import '../../texts/en/gallery';
import '../../texts/en/result';
import { useLiveQuery } from 'dexie-react-hooks';
import { savePoster } from '../../../lib/predictions/poster';
import { readVideo } from '../../../lib/predictions/videos';
import { useAnswer, useObjectUrl, useReducedMotion } from '../../shared/browser';
import { formatDate } from '../../texts/format';
import { settingDifferences } from '../result/player/setting-differences';
import { secondsOf } from '../result/video-facts';
import { interruptionTitle } from '../run/interruption';

/** What the buttons of a card do; the same object in each render. */
export interface CardActions {
  readonly onShow: (id: string) => void;
  /** Shows it as large as the window. */
  readonly onView: (id: string) => void;
  readonly onResume: (id: string) => void;
  readonly onRunAgain: (id: string) => void;
  readonly onDelete: (id: string) => void;
  /** Selects it; with the shift key, all from the last one to it. */
  readonly onSelect: (id: string, extend: boolean) => void;
  /** One of the card's keys was pressed. */
  readonly onKey: (id: string, key: string) => void;
}

const cardKeys = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Delete'];

interface CardProps {
  readonly prediction: Prediction;
  /** Its place among all that are shown, from 1. */
  readonly position: number;
  readonly total: number;
  /** Its row in the grid, from 0. */
  readonly row: number;
  /** The cards before and after it that have the same prompt; null where they have another one. */
  readonly before: Prediction | null;
  readonly after: Prediction | null;
  readonly isSelected: boolean;
  readonly isShown: boolean;
  readonly busy: boolean;
  readonly actions: CardActions;
  readonly measure: RefCallback<HTMLElement> | null;
}

/** One past prediction; a failed one with its error and remedy, unless the stage shows them. */
export const Card = memo(function Card(props: CardProps) {
  const { prediction, position, total, row, isSelected, isShown, actions, measure } = props;
  const { id, parameters, createdAt, status, favourite = false, tags } = prediction;
  const promptId = useId();
  /** Whether it has the mouse, or the focus of the keyboard. */
  const [active, setActive] = useState(false);
  const reason = status === 'completed' ? blurReason(prediction.result.safety) : null;
  const mark = () => {
    getRunner()
      .store.dispatch(id, { type: 'marked', favourite: !favourite })
      .catch(() => {}); // Without space in the database, the star stays as it is.
  };
  return (
    <li
      ref={measure}
      className="card flex relative clip bordered on-surface"
      aria-posinset={position}
      aria-setsize={total}
      data-index={row}
      data-id={id}
      data-status={status}
      data-selected={isSelected}
    >
      <Button
        className="card-face stack gap-2 bare"
        aria-current={isShown ? 'true' : undefined}
        onClick={() => actions.onShow(id)}
        onKeyDown={(event) => {
          if (!cardKeys.includes(event.key)) return;
          // The page would scroll.
          event.preventDefault();
          actions.onKey(id, event.key);
        }}
        onPointerEnter={({ pointerType }) => setActive(pointerType === 'mouse')}
        onPointerLeave={() => setActive(false)}
        onFocus={({ currentTarget }) => setActive(currentTarget.matches(':focus-visible'))}
        onBlur={() => setActive(false)}
      >
        <Poster prediction={prediction} active={active} />
        <span className="card-prompt clamp" id={promptId}>
          {parameters.prompt}
        </span>
        {reason && <span className="muted text-s">{reason}</span>}
        <span className="muted text-s">
          {t.rich('gallery.facts', {
            size: formatSize(parameters.size),
            seconds: secondsOf(prediction),
            date: () => <time dateTime={createdAt}>{formatDate(createdAt, dateOptions)}</time>,
          })}
        </span>
        <Distinction {...props} />
        {tags && (
          <span className="tags row wrap gap-4">
            {tags.map((tag) => (
              <span key={tag}>{tag}</span>
            ))}
          </span>
        )}
      </Button>
      <input
        type="checkbox"
        className="card-check"
        aria-label={t('gallery.select')}
        aria-describedby={promptId}
        checked={isSelected}
        // The change event does not tell the keys.
        onChange={() => {}}
        onClick={(event: MouseEvent) => actions.onSelect(id, event.shiftKey)}
      />
      <Button
        className="card-star overlay"
        aria-label={t('gallery.favourite')}
        aria-describedby={promptId}
        aria-pressed={favourite}
        onClick={mark}
      >
        <StarIcon />
      </Button>
      {status === 'completed' && (
        <Button
          className="card-view overlay"
          aria-label={t('gallery.fullScreen')}
          aria-describedby={promptId}
          title={t('gallery.fullScreen')}
          onClick={() => actions.onView(id)}
        >
          <ExpandIcon />
        </Button>
      )}
      <Outcome {...props} />
    </li>
  );
});

/** Settings that tell videos of one prompt apart, the first ones first. The card has the others already. */
const distinguishing = ['seed', 'steps', 'speed', 'guidance', 'loras', 'flowShift', 'model'];
/** Most of them on a card. */
const mostDifferences = 3;

/** What it was made of, or in what it differs from its neighbours of the same prompt; else its seed. */
function Distinction({ prediction, before, after }: CardProps) {
  const { parameters } = prediction;
  const seed = t('gallery.seed', { seed: String(parameters.seed) });
  if (prediction.status !== 'completed') return <span className="muted text-s">{seed}</span>;
  const { parts } = prediction;
  if (parts) {
    return <span className="muted text-s">{t('gallery.parts', { count: parts.length })}</span>;
  }
  const differences = [before, after].flatMap((neighbour) =>
    neighbour?.status === 'completed' && !neighbour.parts
      ? settingDifferences(prediction, neighbour)
      : [],
  );
  const ordered = distinguishing.flatMap((setting) =>
    differences.filter((difference) => difference.setting === setting).slice(0, 1),
  );
  const texts = ordered.slice(0, mostDifferences).map(({ setting, first }) =>
    t('gallery.setting', {
      name: t(`result.settings.${setting}`),
      value: first || t('shared.none'),
    }),
  );
  if (texts.length === 0) texts.push(seed);
  return (
    <span className="muted text-s card-differences">
      {texts.map((text) => (
        <span key={text}>{text}</span>
      ))}
    </span>
  );
}

/** Why there is no video, and what can be done. */
function Outcome({ prediction, isShown, busy, actions }: CardProps) {
  const { id, status } = prediction;
  if (status === 'interrupted') {
    return (
      <>
        <p className="card-note text-m" data-code={prediction.error.code}>
          {t.rich('gallery.interrupted', {
            title: interruptionTitle(prediction),
            message: errorTexts(prediction.error).message,
            strong: (title) => <strong>{title}</strong>,
          })}
        </p>
        <div className="actions small card-actions">
          <Button disabled={busy} onClick={() => actions.onResume(id)}>
            {t('gallery.resume')}
          </Button>
          <Button className="danger" onClick={() => actions.onDelete(id)}>
            {t('gallery.delete')}
          </Button>
        </div>
      </>
    );
  }
  if (status !== 'failed') return null;
  const { error } = prediction;
  const { message, remedy } = errorTexts(error);
  return (
    <>
      {isShown || error.code === 'CANCELLED' ? (
        <p className="card-note text-m" data-code={error.code}>
          <strong>
            {error.code === 'CANCELLED' ? t('gallery.cancelled') : t('gallery.failed')}
          </strong>
        </p>
      ) : (
        <p className="card-note text-m" data-code={error.code}>
          <strong>{message}</strong> {remedy}
        </p>
      )}
      <div className="actions small card-actions">
        <Button disabled={busy} onClick={() => actions.onRunAgain(id)}>
          {t('gallery.runAgain')}
        </Button>
        <Button className="danger" onClick={() => actions.onDelete(id)}>
          {t('gallery.delete')}
        </Button>
      </div>
    </>
  );
}

const dateOptions = {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
} as const;

/** The picture of a card: a frame of the video, or the start image. While `active`, the video plays. */
function Poster({ prediction, active }: { prediction: Prediction; active: boolean }) {
  const completed = prediction.status === 'completed' ? prediction : null;
  const picture = useLiveQuery(() => findPicture(prediction.id), [prediction.id]);
  const url = useObjectUrl(picture?.blob);
  const isStartImage = picture?.isFrame === false;
  const still = useReducedMotion();
  useMissingPoster(isStartImage ? completed : null);
  const safety = completed?.result.safety;
  const isFlagged =
    blurReason(safety) !== null || (isStartImage && safety !== undefined && isInputFlagged(safety));
  return (
    <span
      className="poster relative clip wide on-sunken"
      data-size={prediction.parameters.size}
      data-blurred={isFlagged}
    >
      {url && <Picture src={url} alt="" />}
      {completed && active && !isFlagged && !still && (
        <HoverVideo file={completed.result.videoFile} />
      )}
    </span>
  );
}

/** The poster, or the start image where there is none. */
async function findPicture(id: string): Promise<{ blob: Blob | undefined; isFrame: boolean }> {
  const { store } = getRunner();
  const poster = await store.poster(id);
  if (poster) return { blob: poster, isFrame: true };
  return { blob: (await store.source(id))?.thumbnail, isFrame: false };
}

/** Ids of the videos whose poster was made here, or could not be made. */
const tried = new Set<string>();
/** Posters are made one at a time: each decodes a video. */
let pending: Promise<unknown> = Promise.resolve();

/** Makes the poster of a video of an earlier version, or of a page that was closed too early. */
function useMissingPoster(prediction: Completed | null): void {
  useEffect(() => {
    if (!prediction || tried.has(prediction.id)) return;
    tried.add(prediction.id);
    pending = pending.then(() => savePoster(getRunner().store, prediction));
  }, [prediction]);
}

function HoverVideo({ file }: { file: string }) {
  // The stage says where it is missing.
  const url = useObjectUrl(useAnswer(() => readVideo(file), [file]));
  return url && <video src={url} autoPlay muted loop playsInline />;
}
