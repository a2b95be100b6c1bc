import type { Dispatch } from 'react';
import { formatSize } from '../../../lib/contract/format';
import type { Prediction } from '../../../lib/contract/prediction';
import type { Size } from '../../../lib/contract/request';
import type { Filter, GalleryEvent, StatusFilter } from './gallery-state';

/** Search and filters; a filter with one choice is not offered. */
export function Toolbar(props: {
  predictions: readonly Prediction[];
  filter: Filter;
  dispatch: Dispatch<GalleryEvent>;
}) {
  const { predictions, filter, dispatch } = props;
  const change = (values: Partial<Filter>) => dispatch({ type: 'filtered', filter: values });
  const models = choicesOf(predictions, ({ model }) => model, filter.model);
  const sizes = choicesOf(predictions, ({ parameters }) => parameters.size, filter.size);
  const kinds = new Set(predictions.map(({ status }) => status));
  const hasFavourites = filter.favourites || predictions.some(({ favourite }) => favourite);
  return (
    <search className="gallery-filters">
      <input
        type="search"
        aria-label="Search in prompts"
        placeholder="Search prompts"
        value={filter.search}
        onChange={(event) => change({ search: event.target.value })}
      />
      {(kinds.size > 1 || filter.status !== 'videos') && (
        <select
          aria-label="Status"
          value={filter.status}
          onChange={(event) => change({ status: event.target.value as StatusFilter })}
        >
          <option value="videos">All videos</option>
          <option value="completed">Finished</option>
          <option value="interrupted">Interrupted</option>
          <option value="failed">Failed</option>
        </select>
      )}
      {models.length > 1 && (
        <select
          aria-label="Model"
          value={filter.model ?? ''}
          onChange={(event) => change({ model: event.target.value || null })}
        >
          <option value="">Any model</option>
          {models.map((model) => (
            <option key={model}>{model}</option>
          ))}
        </select>
      )}
      {sizes.length > 1 && (
        <select
          aria-label="Size"
          value={filter.size ?? ''}
          onChange={(event) => change({ size: (event.target.value || null) as Size | null })}
        >
          <option value="">Any size</option>
          {sizes.map((size) => (
            <option key={size} value={size}>
              {formatSize(size)}
            </option>
          ))}
        </select>
      )}
      {hasFavourites && (
        <label className="check">
          <input
            type="checkbox"
            checked={filter.favourites}
            onChange={(event) => change({ favourites: event.target.checked })}
          />
          Favourites
        </label>
      )}
    </search>
  );
}

/** The different values of the predictions, with the one that is chosen. */
function choicesOf<T extends string>(
  predictions: readonly Prediction[],
  read: (prediction: Prediction) => T,
  chosen: T | null,
): T[] {
  return [...new Set([...predictions.map(read), ...(chosen ? [chosen] : [])])].sort();
}
