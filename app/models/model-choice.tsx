import {
  formatBytes,
  formatMemory,
  type MemoryNeed,
  type ModelEntry,
  nativeSizeOf,
  profileNames,
  sizes,
} from '../../lib/contract';
import { getDevice } from '../shared/device';
import { type GpuState, shownBackend, useGpu } from '../shared/gpu';
import { durationText, forecastOfModel, useForecast } from '../studio/form/forecast';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { MeasureButton } from './measure-button';
import type { GpuMemory } from './use-gpu-memory';
import { memoryRange } from './wording';

/** Which of the models that can be downloaded suits this device: by its memory, its disk and the time of a video. */
export function ModelChoice(props: {
  models: readonly ModelEntry[];
  /** Bytes of storage that are free; infinite where there may be more than the browser says. */
  free: number;
  memory: GpuMemory;
  /** Asks the GPU whether it gives so many bytes, or how many. */
  onMeasure: (most: number) => void;
}) {
  const { models, free, memory } = props;
  const { gpu } = useGpu();
  const available = memory.status === 'measured' ? memory.bytes : null;
  const most = Math.max(
    ...models.flatMap(({ manifest }) => manifest.choices).map((choice) => memoryRange(choice).full),
  );
  return (
    <section className="panel" aria-labelledby="choice-title">
      <h2 id="choice-title">{t('models.whichModel')}</h2>
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
            <tr key={entry.manifest.id}>
              <th scope="row">
                <a href={`#${entry.manifest.id}`}>{entry.manifest.name}</a>
                <small>{pictureOf(entry)}</small>
              </th>
              <td>
                {entry.manifest.choices.flatMap(({ precision, name, memory }) =>
                  [...profileNames].reverse().map((profile) => (
                    <small key={`${precision} ${profile}`}>
                      {t('models.inPrecision', {
                        precision: `${manifestText(name)}${t('models.comma')}${t(`names.profile.${profile}`)}`,
                        amount: memoryOf(memory[profile], available),
                      })}
                    </small>
                  )),
                )}
              </td>
              <td>
                {entry.ready
                  ? t('models.tickHere')
                  : entry.manifest.choices.map(({ precision, download = 0 }) => (
                      <small key={precision}>
                        {download > free ? `${t('models.noRoom')} ` : ''}
                        {formatBytes(download)}
                      </small>
                    ))}
              </td>
              <td>
                <Times entry={entry} gpu={gpu} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="field-hint">{t('models.whichModelHint')}</p>
      <div className="mt-8 text-l">
        <MeasureButton gpu={memory} onMeasure={() => props.onMeasure(most)} />
      </div>
    </section>
  );
}

/** How long 5 seconds of video take on this device, by profile. */
function Times({ entry, gpu }: { entry: ModelEntry; gpu: GpuState }) {
  const report = gpu.status === 'known' ? gpu.report : null;
  const backend = shownBackend(getDevice(), gpu);
  const of = (profile: (typeof profileNames)[number]) =>
    forecastOfModel(entry, profile, backend, report);
  const forecasts = {
    standard: useForecast(of('standard')),
    'ultra-fast': useForecast(of('ultra-fast')),
  };
  return [...profileNames].reverse().map((profile) => {
    const { [profile]: forecast } = forecasts;
    return (
      <small key={profile}>
        {t(`names.profile.${profile}`)}: {forecast ? durationText(forecast) : '…'}
      </small>
    );
  });
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

function memoryOf({ least, full }: MemoryNeed, available: number | null): string {
  const range = t('models.memoryRange', { least: formatMemory(least), full: formatMemory(full) });
  if (available === null) return range;
  const sign = available >= full ? 'full' : available >= least ? 'some' : 'none';
  return `${range} ${t(`models.fit.${sign}`)}`;
}
