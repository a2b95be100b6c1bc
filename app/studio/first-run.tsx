import Link from 'next/link';
import type { ModelEntry } from '../../lib/contract/library';
import type { Backend } from '../../lib/contract/prediction';
import type { GpuState } from '../shared/gpu';
import type { ModelList } from '../shared/use-models';
import { t } from '../texts';
import '../texts/en/form';
import { deviceSentence } from './first-run-text';
import { forecastOfModel } from './form/forecast-request';
import { useForecast } from './form/use-forecast';
import { SamplePicture } from './sample-picture';

/** The introduction, shown while there is no video: what this device can do, and two ways to begin. */
export function FirstRun(props: {
  gpu: GpuState;
  backend: Backend;
  models: ModelList;
  onSample: () => void;
}) {
  const { gpu, backend, models, onSample } = props;
  const listed = models.status === 'ready' ? models.models : [];
  const real = listed.find(({ origin }) => origin === 'listed');
  return (
    <section className="panel stage empty" aria-labelledby="empty-title">
      <h2 id="empty-title">{t('form.firstTitle')}</h2>
      <p>{t('form.firstText')}</p>
      {real && <RealModel {...{ gpu, backend, real }} />}
      <div className="actions">
        <button type="button" className="primary" onClick={onSample}>
          {t('form.trySample')}
        </button>
        {real && !real.ready && (
          <Link href={`/models#${real.manifest.id}`} prefetch={false} className="button">
            {t('shared.getModel', { name: real.manifest.name })}
          </Link>
        )}
      </div>
      <SamplePicture />
    </section>
  );
}

function RealModel(props: { gpu: GpuState; backend: Backend; real: ModelEntry }) {
  const { gpu, backend, real } = props;
  const report = gpu.status === 'known' ? gpu.report : null;
  const standard = useForecast(forecastOfModel(real, 'standard', backend, report));
  const fast = useForecast(forecastOfModel(real, 'ultra-fast', backend, report));
  const { name } = real.manifest;
  return (
    <p className="device-sentence" role="status">
      {deviceSentence(gpu, backend, name, { standard, fast })}
      {standard &&
        !real.ready &&
        ` ${t('form.modelStorage', { name, gigabytes: Math.round(standard.weightBytes / 1e9) })}`}
    </p>
  );
}
