import type { Prediction } from '../../../lib/contract/prediction';
import type { Size } from '../../../lib/contract/request';

/** Which rows the gallery shows. Failed ones are folded away: only `failed` shows them. */
export type StatusFilter = 'videos' | 'completed' | 'interrupted' | 'failed';

/** What the gallery shows; null means any. */
export interface Filter {
  readonly search: string;
  readonly status: StatusFilter;
  readonly model: string | null;
  readonly size: Size | null;
  readonly favourites: boolean;
}

export const noFilter: Filter = {
  search: '',
  status: 'videos',
  model: null,
  size: null,
  favourites: false,
};

/** What is shown, and what is selected of it. */
export interface GalleryState {
  readonly filter: Filter;
  readonly selected: ReadonlySet<string>;
  /** The last one that was selected by itself: a range begins there. */
  readonly anchor: string | null;
}

export const initialGallery: GalleryState = {
  filter: noFilter,
  selected: new Set(),
  anchor: null,
};

export type GalleryEvent =
  | { readonly type: 'filtered'; readonly filter: Partial<Filter> }
  | { readonly type: 'toggled'; readonly id: string }
  /** Selects all from the anchor to this one. @param shown ids in the order of the page */
  | { readonly type: 'extended'; readonly id: string; readonly shown: readonly string[] }
  | { readonly type: 'selected'; readonly ids: readonly string[] };

/** The next state of the gallery. Another filter ends the selection: nothing that is hidden is selected. */
export function advanceGallery(state: GalleryState, event: GalleryEvent): GalleryState {
  switch (event.type) {
    case 'filtered':
      return { ...initialGallery, filter: { ...state.filter, ...event.filter } };
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

/** The predictions that fit, in the given order; each word of the search is somewhere in the prompt. */
export function filterPredictions<T extends Prediction>(
  predictions: readonly T[],
  { search, status, model, size, favourites }: Filter,
): T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return predictions.filter((prediction) => {
    const prompt = prediction.parameters.prompt.toLowerCase();
    return (
      hasStatus(prediction, status) &&
      (model === null || prediction.model === model) &&
      (size === null || prediction.parameters.size === size) &&
      (!favourites || prediction.favourite === true) &&
      words.every((word) => prompt.includes(word))
    );
  });
}

function hasStatus({ status }: Prediction, wanted: StatusFilter): boolean {
  if (wanted !== 'videos') return status === wanted;
  return status === 'completed' || status === 'interrupted';
}
