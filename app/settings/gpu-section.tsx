import { useLiveQuery } from 'dexie-react-hooks';
import { useState } from 'react';
import {
  type DeviceReport,
  type KernelRecord,
  type KernelSetting,
  KinoraError,
  kernelSettings,
  matrixFeature,
  usualKernels,
} from '../../lib/contract';
import { gainsByIntegers } from '../../lib/gpu/kernels/peak-rate';
import {
  mostLosses,
  peakOf,
  readRecord,
  recordId,
  type TuningRecord,
} from '../../lib/gpu/kernels/record';
import { gpuLock } from '../../lib/predictions/locks';
import { loadSetting } from '../../lib/predictions/settings';
import { engine } from '../engine';
import { getRunner } from '../runner';
import { Button } from '../shared/button';
import { changeDevice, useDevice } from '../shared/device';
import { ChoiceField } from '../shared/fields';
import { collectDiagnostics, type GpuState, gpuProblem } from '../shared/gpu';
import { Problem } from '../shared/messages';
import { useTask } from '../shared/task';
import { t } from '../texts';
import '../texts/en/settings';
import { formatDate } from '../texts/format';
import { GpuReport } from './gpu-report';
import { KernelTable } from './kernel-table';

/** What computes on the GPU of this browser, and how fast it is. */
export function GpuSection({ gpu }: { gpu: GpuState }) {
  const { kernels } = useDevice();
  const report = gpu.status === 'known' && gpu.report.outcome === 'ready' ? gpu.report : null;
  const record = useLiveQuery(() => recordOf(report), [report]) ?? null;
  const preferred = kernels ?? usualKernels(report?.software ?? false);
  const peak = record && peakOf(record);
  const lacks: Partial<Record<KernelSetting, boolean>> = {
    matrix: !report?.features.includes(matrixFeature),
    // Measuring, which the first video does too, tells whether a GPU gains by integers.
    fast: !report?.software && (peak ? !gainsByIntegers(peak) : preferred !== 'fast'),
  };
  const offered = kernelSettings.filter((name) => !lacks[name]);
  // The engine, too, takes exact kernels for a mode that the device has none for.
  const setting = offered.includes(preferred) ? preferred : 'exact';
  const missing = gpuProblem(gpu, 'webgpu', null);
  return (
    <section className="panel gpu-section" aria-labelledby="gpu-title">
      <h2 id="gpu-title">{t('settings.gpu')}</h2>
      <p className="field-hint">{nameOf(gpu)}</p>
      {missing && missing.code !== 'ADAPTER_SOFTWARE' && <Problem error={missing} />}
      {report && (
        <details className="more">
          <summary>{t('settings.expert')}</summary>
          <KernelField
            setting={setting}
            offered={offered}
            hints={report.software ? [] : hintsOf(lacks, peak !== null)}
            onChange={(chosen) => changeDevice({ kernels: chosen })}
          />
          {setting !== 'runtime' && <Measured record={record} setting={setting} report={report} />}
          <GpuReport />
        </details>
      )}
      <Actions gpu={gpu} report={report} record={record} setting={setting} />
    </section>
  );
}

function KernelField(props: {
  setting: KernelSetting;
  /** Those that this device has kernels for. */
  offered: readonly KernelSetting[];
  /** When there would be more. */
  hints: readonly string[];
  onChange: (setting: KernelSetting) => void;
}) {
  const { setting, offered, hints, onChange } = props;
  return (
    <ChoiceField
      name="kernels"
      legend={t('settings.kernels')}
      options={offered}
      chosen={setting}
      show={(name) => <span>{t(`shared.kernels.${name}`)}</span>}
      onChange={onChange}
      aria-describedby="kernels-hint"
    >
      <p className="field-hint" id="kernels-hint">
        {t(`settings.kernelsHint.${setting}`)}
      </p>
      {hints.map((hint) => (
        <p key={hint} className="field-hint">
          {hint}
        </p>
      ))}
    </ChoiceField>
  );
}

/** What a GPU needs before it is offered the modes that it lacks. */
function hintsOf(lacks: Partial<Record<KernelSetting, boolean>>, measured: boolean): string[] {
  return [
    ...(lacks.fast && !measured ? [t('settings.fastWhenMeasured')] : []),
    ...(lacks.matrix ? [t('settings.matrixFlags')] : []),
  ];
}

/** What was measured in the mode that is chosen. */
function Measured(props: {
  record: TuningRecord | null;
  setting: Exclude<KernelSetting, 'runtime'>;
  report: DeviceReport;
}) {
  const { record, setting, report } = props;
  const refused = record?.refused ?? [];
  // The engine takes exact kernels instead.
  const tuned = record?.modes[setting === 'matrix' && refused.length > 0 ? 'exact' : setting];
  const date = (iso: string) => formatDate(iso, { dateStyle: 'medium' });
  const state = () => {
    if ((record?.losses ?? 0) >= mostLosses) return t('settings.gpuLostTwice');
    if (!tuned) return t(report.software ? 'settings.notChecked' : 'settings.notMeasured');
    if (report.software) return t('settings.checkedOn', { date: date(tuned.date) });
    if (tuned.skipped) return t('settings.skippedOn', { date: date(tuned.date) });
    return t('settings.measuredOn', { date: date(tuned.date) });
  };
  return (
    <>
      {refused.length > 0 && (
        <p className="field-hint">
          {t('settings.featuresRefused', { features: refused.join(', ') })}
        </p>
      )}
      <p className="field-hint">{state()}</p>
      {tuned && <KernelTable tuned={tuned} peak={record && peakOf(record)} />}
    </>
  );
}

function Actions(props: {
  gpu: GpuState;
  report: DeviceReport | null;
  record: TuningRecord | null;
  setting: KernelSetting;
}) {
  const { gpu, report, record, setting } = props;
  const [tuning, setTuning] = useState<{ done: number; total: number } | null>(null);
  const { problem, run } = useTask();
  const [copied, setCopied] = useState(false);
  const canTune = report !== null && !report.software && setting !== 'runtime';
  const start = () => {
    setTuning({ done: 0, total: 0 });
    run(() => tuneAgain(setting, setTuning).finally(() => setTuning(null)));
  };
  const copy = async () => {
    await navigator.clipboard.writeText(
      await collectDiagnostics(gpu, null, { setting, record, lastRun: await lastRun() }),
    );
    setCopied(true);
  };
  return (
    <>
      {tuning && (
        <>
          <progress
            aria-label={t('settings.measuring')}
            value={tuning.total > 0 ? tuning.done : undefined}
            max={tuning.total || undefined}
          />
          <p className="measure numbers">{t('shared.measuringGpu', { ...tuning })}</p>
        </>
      )}
      <div className="actions">
        {canTune && !tuning && (
          <Button onClick={start}>
            {t(record?.modes[setting] ? 'settings.tuneAgain' : 'settings.tuneNow')}
          </Button>
        )}
        {tuning && (
          <Button
            // The measuring may have ended meanwhile.
            onClick={() =>
              void engineApi()
                .skipTuning()
                .catch(() => {})
            }
          >
            {t('shared.skip')}
          </Button>
        )}
        {/* Where the clipboard is closed to the page, the button does not say that it was copied. */}
        <Button onClick={() => void copy().catch(() => setCopied(false))}>
          {t(copied ? 'shared.diagnosticsCopied' : 'shared.copyDiagnostics')}
        </Button>
      </div>
      <div role="status" className="notice">
        {problem && <Problem error={problem} />}
      </div>
    </>
  );
}

const engineApi = () => engine.open().api;

/** Measures the kernels again. @throws KinoraError `BUSY` while a video is being made */
function tuneAgain(
  setting: KernelSetting,
  onProgress: (progress: { done: number; total: number }) => void,
): Promise<void> {
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    const { api, crashed } = engine.open();
    const tuned = api.tune(setting, (event) => {
      if (event.type === 'tuning') onProgress(event);
    });
    try {
      await Promise.race([tuned, crashed]);
      await api.unload();
    } catch (thrown) {
      // The worker's end frees the rest of a lost device.
      engine.close();
      throw thrown;
    }
  });
}

/** What is stored of a device; null where nothing is, or the database is blocked. */
async function recordOf(report: DeviceReport | null): Promise<TuningRecord | null> {
  if (!report) return null;
  const { database } = getRunner().store;
  return readRecord(
    await loadSetting(database, recordId(report, navigator.userAgent)).catch(() => null),
  );
}

/** What computed the newest video of this browser, overflows included; null where none is known. */
async function lastRun(): Promise<KernelRecord | null> {
  const newestFirst = await getRunner()
    .store.list()
    .catch(() => []); // The list of videos says itself that it cannot be read.
  const finished = newestFirst.find(({ status }) => status === 'completed');
  return (finished?.status === 'completed' && finished.result.kernels) || null;
}

function nameOf(gpu: GpuState): string {
  if (gpu.status === 'checking') return t('shared.gpuChecking');
  if (gpu.status === 'failed') return t('shared.engineFailed');
  const { adapter, outcome, software } = gpu.report;
  if (outcome === 'no-webgpu') return t('shared.noWebgpu');
  if (outcome === 'no-adapter') return t('shared.noGpu');
  if (software) return t('shared.softwareGpu');
  const { vendor, architecture, description } = adapter;
  const name = description || [vendor, architecture].filter(Boolean).join(' ');
  return name ? t('shared.gpuName', { name }) : t('shared.gpuReady');
}
