import type { Dispatch } from 'react';
import { formatSize } from '../../../lib/contract/format';
import type { Prediction } from '../../../lib/contract/prediction';
import type { Size } from '../../../lib/contract/request';
import { t } from '../../texts';
import '../../texts/en/gallery';
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
        aria-label={t('gallery.searchLabel')}
        placeholder={t('gallery.search')}
        value={filter.search}
        onChange={(event) => change({ search: event.target.value })}
      />
      {(kinds.size > 1 || filter.status !== 'videos') && (
        <select
          aria-label={t('gallery.status')}
          value={filter.status}
          onChange={(event) => change({ status: event.target.value as StatusFilter })}
        >
          <option value="videos">{t('gallery.allVideos')}</option>
          <option value="completed">{t('gallery.finished')}</option>
          <option value="interrupted">{t('gallery.interruptedOnes')}</option>
          <option value="failed">{t('gallery.failed')}</option>
        </select>
      )}
      {models.length > 1 && (
        <select
          aria-label={t('shared.model')}
          value={filter.model ?? ''}
          onChange={(event) => change({ model: event.target.value || null })}
        >
          <option value="">{t('gallery.anyModel')}</option>
          {models.map((model) => (
            <option key={model}>{model}</option>
          ))}
        </select>
      )}
      {sizes.length > 1 && (
        <select
          aria-label={t('gallery.size')}
          value={filter.size ?? ''}
          onChange={(event) => change({ size: (event.target.value || null) as Size | null })}
        >
          <option value="">{t('gallery.anySize')}</option>
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
          {t('gallery.favourites')}
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
