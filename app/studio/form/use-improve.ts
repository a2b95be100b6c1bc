import { type Dispatch, useEffect, useReducer, useRef } from 'react';
import { toKinoraError } from '../../../lib/contract/errors';
import { resolveSeed } from '../../../lib/contract/parameters';
import { withScales } from '../../../lib/predictions/loras';
import { getLibrary } from '../../library';
import { pickModel, readyFirst } from '../../shared/use-models';
import { openChosen } from '../run/use-generate';
import { type FormAction, type FormState, toNumber } from './form-state';
import {
  advanceImprove,
  type ImproveRequest,
  type ImproveState,
  isApplied,
  notImproving,
} from './improve-state';

/** Milliseconds of writing at first, and after "Wait longer". */
export const improveLimits = { first: 20_000, longer: 120_000 } as const;

/** The improvement of the form's prompt. */
export interface Improve {
  readonly state: ImproveState;
  readonly start: () => void;
  /** Asks again, with more time. */
  readonly waitLonger: () => void;
  readonly cancel: () => void;
  /** Puts the user's own words back. */
  readonly undo: () => void;
}

/** Improves the prompt of the form; nothing of it starts a video. */
export function useImprove(form: FormState, change: Dispatch<FormAction>): Improve {
  const [state, dispatch] = useReducer(advanceImprove, notImproving);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const { values, files } = form;

  async function run(request: ImproveRequest): Promise<void> {
    const control = new AbortController();
    const { signal } = control;
    running.current?.abort();
    running.current = control;
    dispatch({ type: 'started', request, at: Date.now() });
    try {
      const { models, tools } = await getLibrary().call((api) => api.snapshot());
      if (!tools.some(({ ready }) => ready)) {
        dispatch({ type: 'offered' });
        return;
      }
      const opened = await Promise.all(files.loras.map(openChosen));
      const scales = files.loras.map(({ name, scale }) => ({ path: name, scale: Number(scale) }));
      const { runImprove } = await import('./run-improve');
      const record = await runImprove(request, {
        model: pickModel(readyFirst(models), values.model)?.manifest.id ?? '',
        loras: withScales(opened, { loras: scales }),
        signal,
        onText: (text) => !signal.aborted && dispatch({ type: 'wrote', text }),
      });
      if (signal.aborted) return;
      dispatch({ type: 'ended', record });
      if (!isApplied(record)) return;
      change({ type: 'changed', values: { prompt: record.text, optimization: record } });
    } catch (thrown) {
      if (!signal.aborted) dispatch({ type: 'failed', error: toKinoraError(thrown).toRecord() });
    }
  }

  return {
    state,
    start() {
      void run({ ...promptAndSeed(form), limitMs: improveLimits.first });
    },
    waitLonger() {
      if (state.status !== 'ended') return;
      void run({ ...state.request, limitMs: improveLimits.longer });
    },
    cancel() {
      running.current?.abort();
      dispatch({ type: 'closed' });
    },
    undo() {
      dispatch({ type: 'closed' });
      const prompt = values.optimization?.original ?? values.prompt;
      change({ type: 'changed', values: { prompt } });
    },
  };
}

/** The user's own words, and a seed: the next one where they were improved and not edited since. */
function promptAndSeed({ values }: FormState): Pick<ImproveRequest, 'prompt' | 'seed'> {
  const { prompt, optimization } = values;
  const chosen = toNumber(values.seed);
  const seed = Number.isSafeInteger(chosen) && chosen >= -1 ? resolveSeed(chosen) : resolveSeed(-1);
  if (optimization === null || optimization.text !== prompt) return { prompt, seed };
  return { prompt: optimization.original, seed: (optimization.seed ?? seed) + 1 };
}
