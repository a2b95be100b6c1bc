import { type Dispatch, useCallback, useState } from 'react';
import { toKinoraError } from '../../lib/contract/errors';
import type { Prediction } from '../../lib/contract/prediction';
import { withScales } from '../../lib/predictions/database';
import { getRunner } from '../runner';
import { readLastFrame } from './files';
import { type FormAction, fromParameters } from './form-state';
import type { PredictionActions } from './result-card';
import type { FileInput } from './use-file-input';
import type { Generate } from './use-generate';

/** The actions on past predictions, and the id of the prediction that was just deleted. */
export function useActions(options: {
  change: Dispatch<FormAction>;
  showError: FileInput['showError'];
  runs: Pick<Generate, 'runAgain' | 'resume' | 'finish' | 'refine'>;
  /** Called with the id of a prediction that was deleted. */
  onRemoved: (id: string) => void;
}): { actions: PredictionActions; deletedId: string | null; forgetDeleted: () => void } {
  const { change, showError, runs, onRemoved } = options;
  const [deletedId, setDeletedId] = useState<string | null>(null);
  const forgetDeleted = useCallback(() => setDeletedId(null), []);

  const reportErrors = (work: Promise<void>) => {
    work.catch((thrown: unknown) => showError(toKinoraError(thrown)));
  };

  async function applySettings(prediction: Prediction): Promise<void> {
    const { id, parameters, model, profile, backend, promptOptimizer } = prediction;
    const switches = {
      fullDecode: prediction.decoder === 'full',
      cache: prediction.cache === true,
    };
    const optimization = typeof promptOptimizer === 'object' ? promptOptimizer : null;
    // "Use seed" is a separate action: with the same seed and settings the same video would result.
    const { seed: _, ...values } = fromParameters(parameters);
    const run = { model, profile, backend, optimization, ...switches };
    change({ type: 'changed', values: { ...values, ...run } });
    const source = await getRunner().store.source(id);
    if (!source) return;
    change({ type: 'imageSet', image: { name: source.imageName, file: source.image } });
    const loras = withScales(source.loras, parameters).map(({ name, file, scale }) => {
      return { key: crypto.randomUUID(), name, file, scale: String(scale) };
    });
    change({ type: 'lorasSet', loras });
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

  const actions: PredictionActions = {
    onUseSettings: (prediction) => reportErrors(applySettings(prediction)),
    onUseSeed: (seed) => change({ type: 'changed', values: { seed: String(seed) } }),
    onUseLastFrame: (video) => reportErrors(applyLastFrame(video)),
    onRunAgain: (id) => void runs.runAgain(id),
    onResume: (id) => void runs.resume(id),
    onFinish: (id) => void runs.finish(id),
    onRefine: (id) => void runs.refine(id),
    onDelete: (id) => reportErrors(remove(id)),
    onDeleted: showError,
  };
  return { actions, deletedId, forgetDeleted };
}
