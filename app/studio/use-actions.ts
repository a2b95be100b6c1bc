import { type Dispatch, useCallback, useState } from 'react';
import { toKinoraError } from '../../lib/contract/errors';
import type { Prediction } from '../../lib/contract/prediction';
import { getRunner } from '../runner';
import { type FormAction, fromParameters } from './form-state';
import { readLastFrame } from './last-frame';
import type { PredictionActions } from './result-card';
import type { Intake } from './use-intake';

/** What the buttons of a past prediction do, and the one that was just deleted. */
export function useActions(options: {
  change: Dispatch<FormAction>;
  intake: Intake;
  runAgain: (id: string) => Promise<void>;
}): { actions: PredictionActions; deletedId: string | null; forgetDeleted: () => void } {
  const { change, intake, runAgain } = options;
  const [deletedId, setDeletedId] = useState<string | null>(null);
  const forgetDeleted = useCallback(() => setDeletedId(null), []);

  const reported = (work: Promise<void>) => {
    work.catch((thrown: unknown) => intake.fail(toKinoraError(thrown)));
  };

  async function takeSettings(prediction: Prediction): Promise<void> {
    const { id, parameters, model, backend } = prediction;
    // A seed is taken over on its own; other settings are meant for new videos.
    const { seed: _, ...values } = fromParameters(parameters);
    change({ type: 'changed', values: { ...values, model, backend } });
    const source = await getRunner().store.source(id);
    if (!source) return;
    change({ type: 'imageSet', image: { name: source.imageName, file: source.image } });
    const loras = source.loras.map(({ name, file }, index) => {
      const scale = String(parameters.loras[index]?.scale ?? 1);
      return { key: crypto.randomUUID(), name, file, scale };
    });
    change({ type: 'lorasSet', loras });
  }

  async function takeLastFrame(video: File): Promise<void> {
    const file = await readLastFrame(video);
    change({ type: 'imageSet', image: { name: 'last-frame.png', file } });
    document.getElementById('prompt')?.focus();
  }

  async function remove(id: string): Promise<void> {
    if (await getRunner().store.remove(id)) setDeletedId(id);
  }

  const actions: PredictionActions = {
    onUseSettings: (prediction) => reported(takeSettings(prediction)),
    onUseSeed: (seed) => change({ type: 'changed', values: { seed: String(seed) } }),
    onUseLastFrame: (video) => reported(takeLastFrame(video)),
    onRunAgain: (id) => void runAgain(id),
    onDelete: (id) => reported(remove(id)),
  };
  return { actions, deletedId, forgetDeleted };
}
