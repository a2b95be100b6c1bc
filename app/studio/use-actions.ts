import { type Dispatch, useCallback, useState } from 'react';
import { toKinoraError } from '../../lib/contract/errors';
import type { Prediction } from '../../lib/contract/prediction';
import { withScales } from '../../lib/predictions/database';
import { getRunner } from '../runner';
import { useStable } from '../shared/use-stable';
import { readLastFrame } from './files';
import { type FormAction, fromRun } from './form-state';
import type { PredictionActions } from './result-card';
import type { FileInput } from './use-file-input';
import type { Generate } from './use-generate';

/** The actions on past predictions, and the id of the prediction that was just deleted. */
export function useActions(options: {
  change: Dispatch<FormAction>;
  showError: FileInput['showError'];
  showInfo: FileInput['showInfo'];
  runs: Pick<Generate, 'makeLonger' | 'runAgain' | 'resume' | 'finish' | 'refine'>;
  /** Called with the id of a prediction that was deleted. */
  onRemoved: (id: string) => void;
}): { actions: PredictionActions; deletedId: string | null; forgetDeleted: () => void } {
  const { change, showError, showInfo, runs, onRemoved } = options;
  const [deletedId, setDeletedId] = useState<string | null>(null);
  const forgetDeleted = useCallback(() => setDeletedId(null), []);

  const reportErrors = (work: Promise<void>) => {
    work.catch((thrown: unknown) => showError(toKinoraError(thrown)));
  };

  async function applySettings(prediction: Prediction): Promise<void> {
    const { id, parameters } = prediction;
    change({ type: 'changed', values: fromRun(prediction) });
    const source = await getRunner().store.source(id);
    const { seed } = parameters;
    if (!source) {
      showInfo(`The settings are in the form, with seed ${seed}. Choose the image again.`);
      return;
    }
    change({ type: 'imageSet', image: { name: source.imageName, file: source.image } });
    const loras = withScales(source.loras, parameters).map(({ name, file, scale }) => {
      return { key: crypto.randomUUID(), name, file, scale: String(scale) };
    });
    change({ type: 'lorasSet', loras });
    showInfo(
      `The settings are in the form, with image and seed ${seed}. Change one of them for another video.`,
    );
  }

  async function applyLastFrame(video: File): Promise<void> {
    const file = await readLastFrame(video);
    change({ type: 'imageSet', image: { name: 'last-frame.png', file } });
    document.getElementById('prompt')?.focus();
  }

  async function remove(id: string): Promise<void> {
    if (!(await getRunner().store.remove(id))) return;
    setDeletedId(id);
    onRemoved(id);
  }

  const actions = useStable<PredictionActions>({
    onUseSettings: (prediction) => reportErrors(applySettings(prediction)),
    onUseSeed: (seed) => change({ type: 'changed', values: { seed: String(seed) } }),
    onUseLastFrame: (video) => reportErrors(applyLastFrame(video)),
    onMakeLonger: (prediction, choice) => void runs.makeLonger(prediction, choice),
    onRunAgain: (id) => void runs.runAgain(id),
    onResume: (id) => void runs.resume(id),
    onFinish: (id) => void runs.finish(id),
    onRefine: (id) => void runs.refine(id),
    onDelete: (id) => reportErrors(remove(id)),
    onDeleted: showError,
  });
  return { actions, deletedId, forgetDeleted };
}
