import { Button } from '../../shared/button';
import { later } from '../../shared/later';
import { t } from '../../texts';
import '../../texts/en/gallery';
import '../videos.css';
import {
  memo,
  type RefObject,
  useDeferredValue,
  useEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from 'react';
import type { Completed, Prediction } from '../../../lib/contract';
import { isAtRest } from '../../../lib/predictions/prediction-state';
import { useStable } from '../../shared/use-stable';
import { Card } from './card';
import { countText, failedText } from './count-text';
import {
  advanceGallery,
  countFilters,
  filterPredictions,
  initialGallery,
  noFilter,
  sortPredictions,
  tagsOf,
} from './gallery-state';
import { SelectionBar } from './selection-bar';
import { Toolbar } from './toolbar';
import type { Deletion } from './use-deletions';
import { type Grid, useGrid } from './use-grid';

const Viewer = later(async () => (await import('./viewer')).Viewer);

interface GalleryProps {
  readonly shownId: string | null;
  readonly busy: boolean;
  /** The last deletion that was undone: its first video gets the focus if it was deleted here. */
  readonly undone: Deletion | null;
}

interface GalleryActions {
  readonly onShow: (id: string) => void;
  readonly onResume: (id: string) => void;
  readonly onRunAgain: (id: string) => void;
  readonly onDelete: (ids: readonly string[]) => void;
}

/** The predictions of this browser that have ended, newest first. */
export function Gallery(
  props: GalleryProps & GalleryActions & { readonly predictions: readonly Prediction[] },
) {
  const { predictions, shownId, busy, undone, onShow, onResume, onRunAgain, onDelete } = props;
  const actions = useStable({ onShow, onResume, onRunAgain, onDelete });
  // What is at work is shown on the stage, and in the header of other pages.
  const ended = useMemo(() => predictions.filter(isAtRest), [predictions]);
  return (
    ended.length > 0 && (
      <GalleryList ended={ended} shownId={shownId} busy={busy} undone={undone} actions={actions} />
    )
  );
}

/** Is rendered again only when a property changes: not with each key in the form. */
const GalleryList = memo(function GalleryList(
  props: GalleryProps & { readonly ended: readonly Prediction[]; readonly actions: GalleryActions },
) {
  const { ended, shownId, busy, undone, actions } = props;
  const [{ filter, sort, selected: marked }, dispatch] = useReducer(advanceGallery, initialGallery);
  // A key in the search field appears before the list follows.
  const applied = useDeferredValue(filter);
  const sorted = useMemo(() => sortPredictions(ended, sort), [ended, sort]);
  const shown = useMemo(() => filterPredictions(sorted, applied), [sorted, applied]);
  const isNarrowed = applied.search.trim() !== '' || countFilters(applied) > 0;
  /** The video that is as large as the window. */
  const [viewed, setViewed] = useState<string | null>(null);
  const failed = useMemo(
    () => filterPredictions(ended, { ...applied, status: 'failed' }),
    [ended, applied],
  );
  const ids = useMemo(() => shown.map(({ id }) => id), [shown]);
  const selected = shown.filter(({ id }) => marked.has(id));
  const grid = useGrid(shown.length);
  const section = useRef<HTMLElement>(null);
  const focusCard = useCardFocus(section, grid, ids, undone);

  const remove = (removed: readonly string[]) => {
    const last = ids.findLastIndex((id) => removed.includes(id));
    const stays = (id: string) => !removed.includes(id);
    const next = ids.slice(last + 1).find(stays) ?? ids.findLast(stays);
    if (next) focusCard(next);
    else document.getElementById('main')?.focus();
    actions.onDelete(removed);
  };
  const cardActions = useStable({
    ...actions,
    onView: setViewed,
    onDelete: (id: string) => remove([id]),
    onSelect: (id: string, extend: boolean) =>
      dispatch(extend ? { type: 'extended', id, shown: ids } : { type: 'toggled', id }),
    onKey: (id: string, key: string) => {
      const { columns } = grid;
      const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
      const target = key in steps && ids[ids.indexOf(id) + steps[key as keyof typeof steps]];
      if (target) focusCard(target);
      else if (key === 'Delete') remove(marked.has(id) ? selected.map((one) => one.id) : [id]);
    },
  });

  return (
    <section ref={section} className="history min-0" aria-labelledby="history-title">
      <h2 id="history-title">{t('gallery.pastVideos')}</h2>
      <div className="gallery-bar stack">
        {ended.length > 1 && (
          <Toolbar filter={filter} sort={sort} dispatch={dispatch} predictions={ended} />
        )}
        {selected.length > 0 && (
          <SelectionBar
            selected={selected}
            knownTags={tagsOf(ended)}
            onSelectAll={() => dispatch({ type: 'selected', ids })}
            onClear={() => dispatch({ type: 'selected', ids: [] })}
            onDelete={() => remove(selected.map(({ id }) => id))}
          />
        )}
      </div>
      <p className="gallery-count flex gap-14 muted text-m">
        <span role="status">
          {shown.length === 0 && isNarrowed
            ? t('gallery.nothing')
            : countText(shown, applied.status === 'failed')}
        </span>
        {shown.length === 0 && isNarrowed && (
          <Button
            className="inline muted text-m"
            onClick={() => {
              dispatch({ type: 'filtered', filter: noFilter });
              section.current?.querySelector<HTMLElement>('[type="search"]')?.focus();
            }}
          >
            {t('gallery.showAll')}
          </Button>
        )}
        {filter.status === 'videos' && failed.length > 0 && (
          <Button
            className="inline muted text-m"
            onClick={() => dispatch({ type: 'filtered', filter: { status: 'failed' } })}
          >
            {t('gallery.showFailed', { runs: failedText(failed) })}
          </Button>
        )}
        {filter.status === 'failed' && (
          <Button
            className="inline muted text-m"
            onClick={() => dispatch({ type: 'filtered', filter: { status: 'videos' } })}
          >
            {t('gallery.back')}
          </Button>
        )}
      </p>
      <ul
        ref={grid.listRef}
        className="stack gap-16"
        style={{
          gridTemplateColumns: `repeat(${grid.columns}, minmax(0, 1fr))`,
          paddingTop: grid.above,
          paddingBottom: grid.below,
        }}
      >
        {shown.slice(grid.from, grid.to).map((prediction, offset) => {
          const index = grid.from + offset;
          return (
            <Card
              key={prediction.id}
              prediction={prediction}
              busy={busy}
              actions={cardActions}
              position={index + 1}
              total={shown.length}
              before={twin(prediction, shown[index - 1])}
              after={twin(prediction, shown[index + 1])}
              row={Math.floor(index / grid.columns)}
              isSelected={marked.has(prediction.id)}
              isShown={shownId === prediction.id}
              measure={index % grid.columns === 0 ? grid.measureRow : null}
            />
          );
        })}
      </ul>
      {viewed !== null && (
        <Viewer
          videos={shown.filter(isCompleted)}
          id={viewed}
          onMove={setViewed}
          onClose={() => {
            setViewed(null);
            focusCard(viewed);
          }}
          onShow={(id) => {
            setViewed(null);
            actions.onShow(id);
          }}
        />
      )}
    </section>
  );
});

function isCompleted(prediction: Prediction): prediction is Completed {
  return prediction.status === 'completed';
}

/** The neighbour of a card if it has the same prompt. */
function twin(prediction: Prediction, neighbour: Prediction | undefined): Prediction | null {
  return neighbour?.parameters.prompt === prediction.parameters.prompt ? neighbour : null;
}

/**
 * Moves the focus to a card, which may not be rendered yet, and to the first one that an undo brings back.
 *
 * @param ids of all cards, in their order
 * @returns moves the focus to the card of a prediction
 */
function useCardFocus(
  section: RefObject<HTMLElement | null>,
  grid: Grid,
  ids: readonly string[],
  undone: Deletion | null,
): (id: string) => void {
  /** The card that gets the focus as soon as it is rendered. */
  const pendingId = useRef<string | null>(null);
  const tryFocus = () => {
    // Behind an open dialog nothing gets the focus.
    if (pendingId.current === null || document.querySelector('dialog[open]')) return;
    const card = section.current?.querySelector(`[data-id="${pendingId.current}"]`);
    if (card) {
      pendingId.current = null;
      card.querySelector<HTMLElement>('.card-face')?.focus();
      return;
    }
    const index = ids.indexOf(pendingId.current);
    if (index >= 0) grid.scrollTo(index);
  };
  useEffect(() => {
    if (undone?.from !== 'gallery') return;
    pendingId.current = undone.ids[0] ?? null;
    // A filter may hide it: the focus does not jump when it appears much later.
    const timer = setTimeout(() => {
      pendingId.current = null;
    }, 1000);
    return () => clearTimeout(timer);
  }, [undone]);
  useEffect(tryFocus);
  return (id) => {
    pendingId.current = id;
    tryFocus();
  };
}
