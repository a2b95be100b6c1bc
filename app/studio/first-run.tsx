import { type Backend, type ModelEntry, type Size, sourcesFor } from '../../lib/contract';
import { Button } from '../shared/button';
import type { GpuState } from '../shared/gpu';
import { LargerModel } from '../shared/model-field';
import type { ModelList } from '../shared/use-models';
import { t } from '../texts';
import '../texts/en/form';
import { deviceSentence } from './first-run-text';
import { forecastOfModel, hasRealGpu, useForecast } from './form/forecast';
import type { ChosenImage } from './form/form-state';
import { FramedPicture } from './form/framed-picture';
import { Hero } from './hero';

/** The introduction, shown while there is no video: what this device can do, and the sample. */
export function FirstRun(props: {
  gpu: GpuState;
  backend: Backend;
  models: ModelList;
  /** The image of the form; null before one is chosen. */
  picture: ChosenImage | null;
  size: Size;
  onSample: () => void;
}) {
  const { gpu, backend, models, picture, size, onSample } = props;
  const listed = models.status === 'ready' ? models.models : [];
  const bundled = listed.find(({ origin }) => origin === 'bundled');
  const real = listed.find(({ origin }) => origin === 'listed');
  const report = gpu.status === 'known' ? gpu.report : null;
  return (
    <section className="panel stage first-run" aria-labelledby="first-title">
      {picture ? (
        <div className="screen preview-place" data-size={size}>
          <FramedPicture image={picture} size={size} />
        </div>
      ) : (
        <Hero />
      )}
      <h2 id="first-title">{t('form.firstTitle')}</h2>
      <div className="row wrap gap-8-16 muted">
        {picture === null && (
          <div className="actions">
            <Button className="primary" onClick={onSample}>
              {t('form.trySample')}
            </Button>
            <Button onClick={chooseImage}>{t('form.choosePhoto')}</Button>
          </div>
        )}
        <p>{t('form.firstText')}</p>
      </div>
      <p className="device-sentence muted" role="status">
        {bundled && real && (
          <DeviceSentence gpu={gpu} backend={backend} bundled={bundled} real={real} />
        )}
      </p>
      {bundled && <LargerModel model={bundled} models={listed} report={report} backend={backend} />}
    </section>
  );
}

/** Opens the field of the form, which is below what a phone shows first. */
function chooseImage(): void {
  const field = document.getElementById('image');
  field?.focus();
  field?.click();
}

function DeviceSentence(props: {
  gpu: GpuState;
  backend: Backend;
  bundled: ModelEntry;
  real: ModelEntry;
}) {
  const { gpu, backend, bundled, real } = props;
  const report = gpu.status === 'known' ? gpu.report : null;
  const onGpu = report !== null && hasRealGpu(report, backend);
  // Where WebGPU was chosen and is missing, it is the CPU that could.
  const usable = report?.outcome === 'ready' ? backend : 'wasm';
  const small = useForecast(
    onGpu || !report ? [] : forecastOfModel(bundled, 'standard', usable, report),
  );
  const standard = useForecast(onGpu ? forecastOfModel(real, 'standard', backend, report) : []);
  const fast = useForecast(onGpu ? forecastOfModel(real, 'ultra-fast', backend, report) : []);
  const { name, precision } = real.manifest;
  const needed = real.manifest.components.filter(({ faster }) => !faster).map(({ id }) => id);
  const files = sourcesFor(real.manifest, precision)
    .filter(({ component }) => needed.includes(component))
    .flatMap((source) => source.files);
  const gigabytes = Math.round(files.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0) / 1e9);
  return (
    <>
      {deviceSentence(gpu, backend, name, { small, standard, fast })}
      {standard && !real.ready && ` ${t('form.modelStorage', { name, gigabytes })}`}
    </>
  );
}
