import { useEffect, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import { appUrl } from '../../lib/contract/site';
import { untilAborted } from '../../lib/contract/until-aborted';
import type { KernelBenchApi } from '../../lib/engine/kernel-benchmark';
import type { KernelReport } from '../../lib/models/wan22/benchmark/kernels';
import { reportText } from '../../lib/models/wan22/benchmark/kernels/tables';
import { gpuLock } from '../../lib/predictions/locks';
import { createWorkerClient } from '../../lib/predictions/worker-client';
import { version } from '../../package.json';
import { getRunner } from '../runner';
import { Problem } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/settings';

/** As `npm run gpu-report`: one variant of each kernel, each measured twice, so that a graphics card takes three minutes. */
const short = { variants: 1, rounds: 2 } as const;

const client = createWorkerClient<KernelBenchApi>(
  'benchmark',
  () => new Worker(new URL('../../workers/kernel-bench.ts', import.meta.url), { type: 'module' }),
);

/** Measures the GPU and shows a text for an issue. What is stopped, or fails, keeps what was measured until then. */
export function GpuReport() {
  const [stop, setStop] = useState<AbortController | null>(null);
  const [report, setReport] = useState<KernelReport | null>(null);
  const [complete, setComplete] = useState(false);
  const [problem, setProblem] = useState<ErrorRecord | null>(null);
  const [copied, setCopied] = useState(false);
  useEffect(() => () => stop?.abort(), [stop]);
  const start = () => {
    const controller = new AbortController();
    setStop(controller);
    setReport(null);
    setComplete(false);
    setProblem(null);
    setCopied(false);
    measure(setReport, controller.signal)
      .then(() => setComplete(true))
      .catch((thrown: unknown) => {
        if (!controller.signal.aborted) setProblem(toKinoraError(thrown).toRecord());
      })
      .finally(() => setStop(null));
  };
  const text = report && reportText(report, version);
  const last = report?.lines.at(-1);
  const copy = async () => {
    await navigator.clipboard.writeText(text ?? '');
    setCopied(true);
  };
  return (
    <div className="gpu-report">
      <h3>{t('settings.report')}</h3>
      <p className="field-hint">{t('settings.reportHint')}</p>
      {stop && <progress aria-label={t('settings.measuring')} />}
      <p className="measure" role="status">
        {stop &&
          (last
            ? t('settings.reportMeasured', { kernel: t(`settings.family.${last.family}`) })
            : t('settings.measuring'))}
        {!stop && report && t(complete ? 'settings.reportMade' : 'settings.reportPartly')}
      </p>
      {text && !stop && (
        <label className="field">
          {t('settings.reportText')}
          <textarea readOnly rows={10} spellCheck={false} lang="en" value={text} />
        </label>
      )}
      <div className="actions">
        <button type="button" onClick={stop ? () => stop.abort() : start}>
          {t(stop ? 'settings.stopReport' : 'settings.makeReport')}
        </button>
        {text && !stop && (
          <button type="button" onClick={() => void copy().catch(() => setCopied(false))}>
            {t(copied ? 'settings.reportCopied' : 'settings.copyReport')}
          </button>
        )}
      </div>
      {problem && <Problem error={problem} />}
    </div>
  );
}

/**
 * Measures in a worker of its own, whose device the engine's makes room for.
 *
 * @throws KinoraError `BUSY` while a video is being made
 */
function measure(onReport: (report: KernelReport) => void, signal: AbortSignal): Promise<void> {
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    await getRunner().engine.open().api.unload();
    const { api, crashed } = client.open();
    try {
      const model = appUrl('/models/wan2.2-ti2v-5b/').href;
      await untilAborted(Promise.race([api.run(model, short, onReport), crashed]), signal);
    } finally {
      client.close();
    }
  });
}
