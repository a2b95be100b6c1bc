import {
  type Backend,
  type DeviceReport,
  formatPercent,
  type ModelEntry,
} from '../../lib/contract';
import { viewModel } from '../models/model-view';
import { useDraft } from '../studio/form/forecast';
import { manifestText, t } from '../texts';
import { Link } from './link';
import { Problem } from './messages';
import type { ModelList } from './use-models';

/** Choice of the model, with a link to download one that is not in this browser yet. */
export function ModelField(props: {
  list: ModelList;
  model: ModelEntry | undefined;
  /** Whether a larger model is offered elsewhere on the page. */
  offered?: boolean;
  /** The engine's report on the GPU; null until it is known. */
  report: DeviceReport | null;
  backend: Backend;
  onChange: (id: string) => void;
}) {
  const { list, model, offered = false, report, backend, onChange } = props;
  const models = list.status === 'ready' ? list.models : [];
  const ready = models.filter((entry) => entry.ready);
  const absent = models.filter((entry) => !entry.ready);
  return (
    <div className="field">
      <label htmlFor="model">{t('shared.model')}</label>
      <select
        id="model"
        value={model?.manifest.id ?? ''}
        disabled={list.status !== 'ready'}
        aria-describedby="model-hint"
        onChange={(event) => onChange(event.target.value)}
      >
        {list.status !== 'ready' && (
          <option value="">
            {list.status === 'loading' ? t('shared.loading') : t('shared.none')}
          </option>
        )}
        <Options models={ready} />
        {absent.length > 0 && (
          <optgroup label={t('shared.notHere')}>
            <Options models={absent} />
          </optgroup>
        )}
      </select>
      <p className="field-hint" id="model-hint">
        {model && manifestText(model.manifest.description)}
      </p>
      {model && !(offered && model.ready) && (
        <LargerModel model={model} models={models} report={report} backend={backend} />
      )}
      {list.status === 'failed' && <Problem error={list.error} />}
    </div>
  );
}

function Options({ models }: { models: readonly ModelEntry[] }) {
  return models.map(({ manifest }) => (
    <option key={manifest.id} value={manifest.id}>
      {manifest.name}
    </option>
  ));
}

/**
 * A link to the selected model if it is not ready, or to a real model if only the sample is ready. Where this device is
 * too slow for that, it says what it needs instead.
 */
export function LargerModel(props: {
  model: ModelEntry;
  models: readonly ModelEntry[];
  /** As in {@link ModelField}. */
  report: DeviceReport | null;
  backend: Backend;
}) {
  const { model, models, report, backend } = props;
  const offered = models.find(({ origin, ready }) => origin === 'listed' && !ready);
  const hasReal = models.some(({ origin, ready }) => origin !== 'bundled' && ready);
  const target = model.ready ? offered : model;
  const { tooSlow } = useDraft(target, report, backend);
  if (!target || (model.ready && hasReal)) return null;
  const { id, name } = target.manifest;
  const { status, fraction } = viewModel(target);
  const begun = status !== 'absent' && status !== 'partial';
  const incomplete =
    fraction === null
      ? t('shared.modelIncomplete', { name })
      : t('shared.modelIncompletePart', { name, percent: formatPercent(fraction) });
  const state = begun ? incomplete : t('shared.modelAbsent', { name });
  const offer = model.ready ? t('shared.getModel', { name }) : t('shared.getHere');
  return (
    <p className="split info mt-8">
      <span>{model.ready && !begun ? t('shared.demonstration') : state}</span>
      {tooSlow && model.ready && !begun ? (
        <span>{t('shared.needsCard')}</span>
      ) : (
        <Link href={`/models#${id}`}>{begun ? t('shared.seeDownload') : offer}</Link>
      )}
    </p>
  );
}
