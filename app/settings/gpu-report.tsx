import { useState } from 'react';
import { appUrl, KinoraError, untilAborted } from '../../lib/contract';
import type { GpuReportApi } from '../../lib/engine/gpu-report';
import type { SpeedReport } from '../../lib/models/wan/speed';
import { reportText } from '../../lib/models/wan/speed/text';
import { gpuLock } from '../../lib/predictions/locks';
import { createWorkerClient } from '../../lib/predictions/worker-client';
import { version } from '../../package.json';
import { engine } from '../engine';
import { Button } from '../shared/button';
import { Problem } from '../shared/messages';
import { useTask } from '../shared/task';
import { t } from '../texts';
import '../texts/en/settings';

const client = createWorkerClient<GpuReportApi>(
  'GPU report',
  () => new Worker(new URL('../../workers/gpu-report.ts', import.meta.url), { type: 'module' }),
);

/** Measures the GPU and shows a text for an issue. A stopped or failed measurement keeps its results until then. */
export function GpuReport() {
  const task = useTask();
  const { busy } = task;
  const [report, setReport] = useState<SpeedReport | null>(null);
  const [complete, setComplete] = useState(false);
  const [copied, setCopied] = useState(false);
  const start = () => {
    setReport(null);
    setComplete(false);
    setCopied(false);
    task.run(async (signal) => {
      await measure(setReport, signal);
      setComplete(true);
    });
  };
  const text = report && reportText(report, version);
  const last = report?.lines.at(-1);
  const copy = async () => {
    await navigator.clipboard.writeText(text ?? '');
    setCopied(true);
  };
  return (
    <div className="gpu-report mt-8">
      <h3>{t('settings.report')}</h3>
      <p className="field-hint">{t('settings.reportHint')}</p>
      {busy && <progress aria-label={t('settings.measuring')} />}
      <p className="measure numbers" role="status">
        {busy &&
          (last
            ? t('settings.reportMeasured', { kernel: t(`settings.measured.${last.measurement}`) })
            : t('settings.measuring'))}
        {!busy && report && t(complete ? 'settings.reportMade' : 'settings.reportPartly')}
      </p>
      {text && !busy && (
        <label className="field">
          {t('settings.reportText')}
          <textarea readOnly rows={10} spellCheck={false} lang="en" value={text} />
        </label>
      )}
      <div className="actions mt-8">
        <Button onClick={busy ? task.stop : start}>
          {t(busy ? 'settings.stopReport' : 'settings.makeReport')}
        </Button>
        {text && !busy && (
          <Button onClick={() => void copy().catch(() => setCopied(false))}>
            {t(copied ? 'settings.reportCopied' : 'settings.copyReport')}
          </Button>
        )}
      </div>
      {task.problem && <Problem error={task.problem} />}
    </div>
  );
}

/**
 * Measures in a worker of its own, whose device the engine's makes room for.
 *
 * @throws KinoraError `BUSY` while a video is being made
 */
function measure(onReport: (report: SpeedReport) => void, signal: AbortSignal): Promise<void> {
  return navigator.locks.request(gpuLock, { ifAvailable: true }, async (lock) => {
    if (!lock) throw new KinoraError('BUSY');
    await engine.open().api.unload();
    const { api, crashed } = client.open();
    try {
      const model = appUrl('/models/wan2.2-ti2v-5b/').href;
      await untilAborted(Promise.race([api.run(model, {}, onReport), crashed]), signal);
    } finally {
      client.close();
    }
  });
}
