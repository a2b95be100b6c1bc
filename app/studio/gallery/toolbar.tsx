import { type Dispatch, useId, useState } from 'react';
import { type Prediction, type Size, sizes } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { Select, Switch } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/gallery';
import {
  choicesOf,
  countFilters,
  type Filter,
  type GalleryEvent,
  type Period,
  periods,
  type Sort,
  type StatusFilter,
  sorts,
  statusFilters,
  tagsOf,
} from './gallery-state';

/** Search, order and filters; a filter with one choice is not offered. Narrow ones fold all but the search. */
export function Toolbar(props: {
  predictions: readonly Prediction[];
  filter: Filter;
  sort: Sort;
  dispatch: Dispatch<GalleryEvent>;
}) {
  const { predictions, filter, sort, dispatch } = props;
  const [open, setOpen] = useState(false);
  const id = useId();
  const change = (values: Partial<Filter>) => dispatch({ type: 'filtered', filter: values });
  const models = choicesOf(predictions, ({ model }) => [model], filter.model);
  const shapes = choicesOf(predictions, ({ parameters }) => [parameters.size], filter.size);
  const tags = tagsOf(predictions, filter.tag);
  const kinds = new Set(predictions.map(({ status }) => status));
  const hasFavourites = filter.favourites || predictions.some(({ favourite }) => favourite);
  const filters = countFilters(filter);
  return (
    <search className="gallery-filters row">
      <input
        type="search"
        aria-label={t('gallery.searchLabel')}
        placeholder={t('gallery.search')}
        value={filter.search}
        onChange={(event) => change({ search: event.target.value })}
      />
      <Button
        className="small gallery-fold"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        {t('gallery.filters', { count: filters })}
      </Button>
      <div id={id} className="gallery-choices" data-open={open}>
        <FilterField
          label={t('gallery.sort')}
          value={sort}
          options={sorts.map((one) => [one, t(`gallery.sorts.${one}`)])}
          onChange={(chosen) => dispatch({ type: 'sorted', sort: chosen as Sort })}
        />
        {(kinds.size > 1 || filter.status !== 'videos') && (
          <FilterField
            label={t('gallery.status')}
            value={filter.status}
            options={statusFilters.map((one) => [one, t(`gallery.statuses.${one}`)])}
            onChange={(chosen) => change({ status: chosen as StatusFilter })}
          />
        )}
        {models.length > 1 && (
          <FilterField
            label={t('shared.model')}
            value={filter.model}
            any={t('gallery.anyModel')}
            options={models.map((model) => [model, model])}
            onChange={(model) => change({ model })}
          />
        )}
        {shapes.length > 1 && (
          <FilterField
            label={t('gallery.shape')}
            value={filter.size}
            any={t('gallery.anyShape')}
            options={sizes.map((size) => [size, t(`gallery.shapes.${shapeOf(size)}`)])}
            onChange={(size) => change({ size: size as Size | null })}
          />
        )}
        <FilterField
          label={t('gallery.date')}
          value={filter.period}
          any={t('gallery.anyDate')}
          options={periods.map((one) => [one, t(`gallery.periods.${one}`)])}
          onChange={(period) => change({ period: period as Period | null })}
        />
        {tags.length > 0 && (
          <FilterField
            label={t('gallery.tag')}
            value={filter.tag}
            any={t('gallery.anyTag')}
            options={tags.map((tag) => [tag, tag])}
            onChange={(tag) => change({ tag })}
          />
        )}
        {hasFavourites && (
          <Switch
            name={t('gallery.favourites')}
            checked={filter.favourites}
            onChange={(favourites) => change({ favourites })}
          />
        )}
      </div>
    </search>
  );
}

/** A filter; null is the first choice, where that has a text. */
function FilterField(props: {
  label: string;
  value: string | null;
  any?: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string | null) => void;
}) {
  const { label, value, any, options, onChange } = props;
  return (
    <Select
      aria-label={label}
      className="text-l"
      value={value ?? ''}
      options={any ? [['', any], ...options] : options}
      onChange={(chosen) => onChange(chosen || null)}
    />
  );
}

const shapeOf = (size: Size) => (size === '1280*720' ? 'landscape' : 'portrait');
