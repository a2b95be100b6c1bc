import type { Dispatch } from 'react';
import { type Prediction, toKinoraError } from '../../lib/contract';
import { useStable } from '../shared/use-stable';
import { t } from '../texts';
import '../texts/en/studio';
import { readImage, readLastFrame } from './form/files';
import { type FormAction, fromRun } from './form/form-state';
import { filesOf } from './form/use-edit';
import type { FileInput } from './form/use-file-input';
import type { PredictionActions } from './result/result-card';
import type { Generate } from './run/use-generate';
import { loadData } from './use-data';

/** The actions on past predictions. */
export function useActions(options: {
  change: Dispatch<FormAction>;
  showError: FileInput['showError'];
  showInfo: FileInput['showInfo'];
  runs: Pick<Generate, 'makeLonger' | 'runAgain' | 'makeStandard' | 'resume' | 'finish' | 'refine'>;
  remove: (id: string) => Promise<void>;
  show: (id: string) => void;
}): PredictionActions {
  const { change, showError, showInfo, runs, remove, show } = options;

  const reportErrors = (work: Promise<void>) => {
    work.catch((thrown: unknown) => showError(toKinoraError(thrown)));
  };

  async function applySettings(prediction: Prediction): Promise<void> {
    const { id, parameters } = prediction;
    change({ type: 'changed', values: fromRun(prediction) });
    const { getRunner } = await loadData();
    const source = await getRunner().store.source(id);
    const { seed } = parameters;
    if (!source) {
      showInfo(t('studio.settingsWithoutImage', { seed }));
      return;
    }
    change({ type: 'restored', files: filesOf(prediction, source) });
    showInfo(t('studio.settingsFilled', { seed }));
  }

  async function applyLastFrame(video: File): Promise<void> {
    const image = await readImage(await readLastFrame(video), 'last-frame.png');
    change({ type: 'imageSet', image });
    document.getElementById('prompt')?.focus();
  }

  return useStable<PredictionActions>({
    onUseSettings: (prediction) => reportErrors(applySettings(prediction)),
    onUseSeed: (seed) => change({ type: 'changed', values: { seed: String(seed) } }),
    onUseLastFrame: (video) => reportErrors(applyLastFrame(video)),
    onMakeLonger: (prediction, choice) => void runs.makeLonger(prediction, choice),
    onRunAgain: (id) => void runs.runAgain(id),
    onMakeStandard: (id) => void runs.makeStandard(id),
    onResume: (id, backend) => void runs.resume(id, backend),
    onFinish: (id) => void runs.finish(id),
    onRefine: (id) => void runs.refine(id),
    onDelete: (id) => reportErrors(remove(id)),
    onKept: show,
    onDeleted: showError,
  });
}
