import type { Prediction, Size } from '../../../lib/contract';
import { secondsOf } from '../result/video-facts';

/** Which rows the gallery shows. Failed ones are folded away: only `failed` shows them. */
export const statusFilters = ['videos', 'completed', 'interrupted', 'failed'] as const;
export type StatusFilter = (typeof statusFilters)[number];

/** When a video was asked for: since midnight, in the last 7 or in the last 30 days. */
export const periods = ['today', 'week', 'month'] as const;
export type Period = (typeof periods)[number];

export const sorts = ['newest', 'oldest', 'longest', 'prompt'] as const;
export type Sort = (typeof sorts)[number];

/** What the gallery shows; null means any. */
export interface Filter {
  readonly search: string;
  readonly status: StatusFilter;
  readonly model: string | null;
  readonly size: Size | null;
  readonly period: Period | null;
  readonly tag: string | null;
  readonly favourites: boolean;
}

export const noFilter: Filter = {
  search: '',
  status: 'videos',
  model: null,
  size: null,
  period: null,
  tag: null,
  favourites: false,
};

/** How many choices narrow down what is shown, the search left out. */
export function countFilters(filter: Filter): number {
  const names = Object.keys(noFilter) as (keyof Filter)[];
  return names.filter((name) => name !== 'search' && filter[name] !== noFilter[name]).length;
}

/** What is shown in which order, and what is selected of it. */
export interface GalleryState {
  readonly filter: Filter;
  readonly sort: Sort;
  readonly selected: ReadonlySet<string>;
  /** The last one that was selected by itself: a range begins there. */
  readonly anchor: string | null;
}

export const initialGallery: GalleryState = {
  filter: noFilter,
  sort: 'newest',
  selected: new Set(),
  anchor: null,
};

export type GalleryEvent =
  | { readonly type: 'filtered'; readonly filter: Partial<Filter> }
  | { readonly type: 'sorted'; readonly sort: Sort }
  | { readonly type: 'toggled'; readonly id: string }
  /** Selects all from the anchor to this one. @param shown ids in the order of the page */
  | { readonly type: 'extended'; readonly id: string; readonly shown: readonly string[] }
  | { readonly type: 'selected'; readonly ids: readonly string[] };

/** The next state of the gallery. Another filter ends the selection: nothing that is hidden is selected. */
export function advanceGallery(state: GalleryState, event: GalleryEvent): GalleryState {
  switch (event.type) {
    case 'filtered':
      return { ...initialGallery, sort: state.sort, filter: { ...state.filter, ...event.filter } };
    case 'sorted':
      return { ...state, sort: event.sort };
    case 'toggled': {
      const selected = new Set(state.selected);
      if (!selected.delete(event.id)) selected.add(event.id);
      return { ...state, selected, anchor: event.id };
    }
    case 'extended': {
      const { id, shown } = event;
      const from = shown.indexOf(state.anchor ?? id);
      const to = shown.indexOf(id);
      const range = shown.slice(Math.min(from, to), Math.max(from, to) + 1);
      return { ...state, selected: new Set([...state.selected, ...(from < 0 ? [id] : range)]) };
    }
    case 'selected':
      return { ...state, selected: new Set(event.ids), anchor: null };
  }
}

/**
 * The predictions that fit, in the given order. Each word of the search is somewhere in the prompt or the
 * tags, or is the seed.
 *
 * @param now milliseconds since the epoch
 */
export function filterPredictions<T extends Prediction>(
  predictions: readonly T[],
  filter: Filter,
  now = Date.now(),
): T[] {
  const { search, status, model, size, period, tag, favourites } = filter;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const since = period ? new Date(startOf(period, now)).toISOString() : '';
  return predictions.filter((prediction) => {
    const { parameters, tags = [] } = prediction;
    const text = `${parameters.prompt}\n${tags.join('\n')}`.toLowerCase();
    return (
      hasStatus(prediction, status) &&
      (model === null || prediction.model === model) &&
      (size === null || parameters.size === size) &&
      prediction.createdAt >= since &&
      (tag === null || tags.includes(tag)) &&
      (!favourites || prediction.favourite === true) &&
      words.every((word) => text.includes(word) || word === String(parameters.seed))
    );
  });
}

const dayMs = 86_400_000;

function startOf(period: Period, now: number): number {
  if (period === 'today') return new Date(now).setHours(0, 0, 0, 0);
  return now - (period === 'week' ? 7 : 30) * dayMs;
}

function hasStatus({ status }: Prediction, filter: StatusFilter): boolean {
  if (filter !== 'videos') return status === filter;
  return status === 'completed' || status === 'interrupted';
}

const byPrompt = new Intl.Collator(undefined, { numeric: true });

/** The predictions in another order. @param newestFirst of those that are equal, the newest comes first */
export function sortPredictions<T extends Prediction>(newestFirst: readonly T[], sort: Sort): T[] {
  const sorted = [...newestFirst];
  switch (sort) {
    case 'newest':
      return sorted;
    case 'oldest':
      return sorted.reverse();
    case 'longest':
      return sorted.sort((a, b) => secondsOf(b) - secondsOf(a));
    case 'prompt':
      return sorted.sort((a, b) => byPrompt.compare(a.parameters.prompt, b.parameters.prompt));
  }
}

/** All tags of the predictions, with one that is chosen. */
export function tagsOf(predictions: readonly Prediction[], chosen: string | null = null): string[] {
  return choicesOf(predictions, ({ tags = [] }) => tags, chosen);
}

/** The different values of the predictions, with the one that is chosen. */
export function choicesOf<T extends string>(
  predictions: readonly Prediction[],
  read: (prediction: Prediction) => readonly T[],
  chosen: T | null,
): T[] {
  return [...new Set([...predictions.flatMap(read), ...(chosen ? [chosen] : [])])].sort();
}
