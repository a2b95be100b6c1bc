import { useEffect, useEffectEvent } from 'react';
import {
  type Backend,
  type DeviceReport,
  formatBytes,
  formatMemory,
  type ModelEntry,
  nativeSizeOf,
  type Precision,
  profileNames,
  sizes,
} from '../../lib/contract';
import { Button } from '../shared/button';
import { useDevice } from '../shared/device';
import { adapterName, shownBackend, useGpu } from '../shared/gpu';
import { Link } from '../shared/link';
import {
  durationText,
  forecastOfModel,
  hasRealGpu,
  useDraft,
  useForecast,
} from '../studio/form/forecast';
import { manifestText, t } from '../texts';
import '../texts/en/form';
import '../texts/en/models';
import { MeasureButton } from './measure-button';
import type { GpuMemory } from './use-gpu-memory';
import { bestChoice, fitOf, fitText, memoryRange, precisionName } from './wording';

/** What computes here, and how many bytes the GPU gives; null where that is not known. */
interface Device {
  readonly report: DeviceReport | null;
  readonly backend: Backend;
  readonly bytes: number | null;
}

/** What this device can do: a sentence and a button, then each large model by memory, disk and the time of a video. */
export function ModelChoice(props: {
  /** The large models, the one for most devices first. */
  models: readonly ModelEntry[];
  /** The model that works everywhere. */
  small: ModelEntry | undefined;
  /** Bytes of storage that are free; infinite where there may be more than the browser says. */
  free: number;
  memory: GpuMemory;
  /** Asks the GPU whether it gives so many bytes, or how many. */
  onMeasure: (most: number) => void;
  onDownload: (entry: ModelEntry, precision: Precision) => void;
}) {
  const { models, small, free, memory, onMeasure, onDownload } = props;
  const { gpu } = useGpu();
  const report = gpu.status === 'known' ? gpu.report : null;
  const backend = shownBackend(useDevice(), gpu);
  const bytes = memory.status === 'measured' ? memory.bytes : null;
  const device = { report, backend, bytes };
  const onGpu = report !== null && hasRealGpu(report, backend);
  const most = Math.max(
    ...models.flatMap(({ manifest }) => manifest.choices).map((choice) => memoryRange(choice).full),
  );
  const measure = useEffectEvent(onMeasure);
  const isUnknown = memory.status === 'unknown';
  useEffect(() => {
    if (onGpu && isUnknown) measure(most);
  }, [onGpu, isUnknown, most]);
  const best = models.find(({ ready }) => ready) ?? models[0];
  const card = t('models.cardName', {
    name: (report && adapterName(report)) || t('form.theGpu'),
    memory: formatMemory(bytes ?? 0),
    range: bytes === null ? 'unknown' : bytes >= most ? 'least' : 'about',
  });
  return (
    <section className="panel" aria-labelledby="choice-title">
      <h2 id="choice-title">{t('models.thisDevice')}</h2>
      {best && report && (!onGpu || bytes !== null || memory.status === 'failed') ? (
        <Answer device={device} card={card} best={best} small={small} onDownload={onDownload} />
      ) : (
        gpu.status !== 'failed' && <p role="status">{t('form.looking')}</p>
      )}
      <table className="plan-table full text-l model-choice">
        <thead>
          <tr>
            <th scope="col">{t('shared.model')}</th>
            <th scope="col">{t('shared.gpuMemory')}</th>
            <th scope="col">{t('models.download')}</th>
            <th scope="col">{t('models.secondsOfVideo')}</th>
          </tr>
        </thead>
        <tbody>
          {models.map((entry) => (
            <Row key={entry.manifest.id} entry={entry} device={device} free={free} />
          ))}
        </tbody>
      </table>
      <p className="field-hint">{t('models.whichModelHint')}</p>
      {onGpu && bytes === null && (
        <div className="mt-8 text-l">
          <MeasureButton gpu={memory} onMeasure={() => onMeasure(most)} />
        </div>
      )}
    </section>
  );
}

/** What this device can do, as a sentence, and the button for that. */
function Answer(props: {
  device: Device;
  card: string;
  /** The model that suits most devices, or one that is here. */
  best: ModelEntry;
  small: ModelEntry | undefined;
  onDownload: (entry: ModelEntry, precision: Precision) => void;
}) {
  const { device, card, best, small, onDownload } = props;
  const { report, backend, bytes } = device;
  const { draft, tooSlow } = useDraft(best, report, backend);
  const choice = bestChoice(best, bytes);
  if (!choice || (!tooSlow && !draft)) return <p role="status">{t('form.looking')}</p>;
  const fit = fitOf(choice, bytes);
  const fits = !tooSlow && fit !== 'none' && draft;
  const shown = fits ? best : small;
  return (
    <div className="row wrap gap-8-16">
      <p role="status">
        {fits
          ? t('models.deviceFits', {
              card,
              model: best.manifest.name,
              precision: precisionName(best.manifest, choice.precision),
              fit,
              time: durationText(fits),
            })
          : t('models.deviceTooSlow', {
              card: draft ? card : 'none',
              small: small?.manifest.name ?? '',
            })}
      </p>
      {shown?.ready ? (
        <Link className="button primary" href={`/?model=${encodeURIComponent(shown.manifest.id)}`}>
          {t('models.makeVideoWith', { name: shown.manifest.name })}
        </Link>
      ) : (
        shown && (
          <Button className="primary" onClick={() => onDownload(shown, choice.precision)}>
            {t('models.downloadBytes', { bytes: formatBytes(choice.download ?? 0) })}
          </Button>
        )
      )}
    </div>
  );
}

/** One model; no link leads to one that is too slow. */
function Row(props: { entry: ModelEntry; device: Device; free: number }) {
  const { entry, device, free } = props;
  const { report, backend } = device;
  const { draft, tooSlow } = useDraft(entry, report, backend);
  const onGpu = report !== null && hasRealGpu(report, backend);
  const standard = useForecast(onGpu ? forecastOfModel(entry, 'standard', backend, report) : []);
  const forecasts = { standard, 'ultra-fast': draft };
  const { manifest, ready } = entry;
  return (
    <tr>
      <th scope="row">
        {tooSlow ? manifest.name : <a href={`#${manifest.id}`}>{manifest.name}</a>}
        <small>{pictureOf(entry)}</small>
      </th>
      <td data-heading={t('shared.gpuMemory')}>
        {manifest.choices.map((choice) => (
          <small key={choice.precision}>
            {t('models.inPrecision', {
              precision: manifestText(choice.name),
              fit: fitText(choice, device.bytes),
            })}
          </small>
        ))}
      </td>
      <td data-heading={t('models.download')}>
        {ready
          ? t('models.tickHere')
          : manifest.choices.map(({ precision, download = 0 }) => (
              <small key={precision}>
                {download > free ? `${t('models.noRoom')} ` : ''}
                {formatBytes(download)}
              </small>
            ))}
      </td>
      <td data-heading={t('models.secondsOfVideo')}>
        {tooSlow ? (
          <small>{t('models.tooSlowHere')}</small>
        ) : (
          [...profileNames].reverse().map((profile) => (
            <small key={profile}>
              {t(`names.profile.${profile}`)}:{' '}
              {forecasts[profile] ? durationText(forecasts[profile]) : '…'}
            </small>
          ))
        )}
      </td>
    </tr>
  );
}

/** `832×480 and 1280×720, 16 frames per second`: at which sizes it computes. */
function pictureOf({ manifest }: ModelEntry): string {
  const [size] = sizes;
  const computed = [...profileNames].reverse().map((profile) => {
    const { width, height } = nativeSizeOf(manifest, manifest.profiles[profile], size);
    return `${width}×${height}`;
  });
  return t('models.computesAt', {
    sizes: [...new Set(computed)].join(t('models.comma')),
    rate: manifest.framesPerSecond,
  });
}
