import { type Dispatch, useEffect, useRef, useState } from 'react';
import {
  type ErrorRecord,
  type PromptOptimization,
  resolveSeed,
  toKinoraError,
  untilAborted,
} from '../../../lib/contract';
import { getLibrary } from '../../library';
import { pickModel, readyFirst } from '../../shared/use-models';
import { useStable, useSteady } from '../../shared/use-stable';
import { type FormAction, type FormState, toNumber } from './form-state';

/** Milliseconds of writing at first, and after "Wait longer". */
export const improveLimits = { first: 20_000, longer: 120_000 } as const;

/** What is asked of a language model. */
export interface ImproveRequest {
  readonly prompt: string;
  /** Never −1. */
  readonly seed: number;
  /** Milliseconds of writing. */
  readonly limitMs: number;
}

/** The improvement of a prompt, until its text is in the form. */
export type ImproveState =
  | { readonly status: 'idle' }
  /** There is no language model: its download is offered. */
  | { readonly status: 'offering' }
  | {
      readonly status: 'running';
      readonly request: ImproveRequest;
      /** Unchecked, as it is written; empty while the model is loaded. */
      readonly text: string;
      /** Milliseconds since the epoch. */
      readonly startedAt: number;
    }
  /** It has ended; `record` says how. */
  | {
      readonly status: 'ended';
      readonly request: ImproveRequest;
      readonly record: PromptOptimization;
    }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** Whether a record has sentences that were added to the prompt. */
export function isApplied({ status }: PromptOptimization): boolean {
  return status === 'used' || status === 'edited';
}

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
  const [state, setState] = useState<ImproveState>({ status: 'idle' });
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const { values } = form;

  async function run(request: ImproveRequest): Promise<void> {
    const control = new AbortController();
    const { signal } = control;
    running.current?.abort();
    running.current = control;
    // What comes after it was cancelled changes nothing.
    const show = (next: ImproveState) => signal.aborted || setState(next);
    const writing = { status: 'running', request, startedAt: Date.now() } as const;
    show({ ...writing, text: '' });
    try {
      const { models, tools } = await getLibrary().call((api) => api.snapshot());
      if (!tools.some(({ ready }) => ready)) {
        show({ status: 'offering' });
        return;
      }
      const model = pickModel(readyFirst(models), values.model)?.manifest.id ?? '';
      const record = await improve(request, model, signal, (text) => show({ ...writing, text }));
      if (signal.aborted) return;
      show({ status: 'ended', request, record });
      if (!isApplied(record)) return;
      change({ type: 'changed', values: { prompt: record.text, optimization: record } });
    } catch (thrown) {
      show({ status: 'failed', error: toKinoraError(thrown).toRecord() });
    }
  }

  function cancel(): void {
    running.current?.abort();
    setState({ status: 'idle' });
  }

  const actions = useStable({
    start: () => void run({ ...promptAndSeed(form), limitMs: improveLimits.first }),
    waitLonger() {
      if (state.status === 'ended') void run({ ...state.request, limitMs: improveLimits.longer });
    },
    cancel,
    undo() {
      cancel();
      const prompt = values.optimization?.original ?? values.prompt;
      change({ type: 'changed', values: { prompt } });
    },
  });
  return useSteady({ state, ...actions });
}

/**
 * Improves one prompt. The worker ends with it, so that its memory is free for the video.
 *
 * @throws KinoraError of the optimizer; the reason of the signal
 */
async function improve(
  { prompt, seed, limitMs: timeLimitMs }: ImproveRequest,
  model: string,
  signal: AbortSignal,
  onText: (soFar: string) => void,
): Promise<PromptOptimization> {
  // No part of what the page needs first.
  const { createOptimizerClient } = await import('../../optimizer-client');
  signal.throwIfAborted();
  const client = createOptimizerClient();
  const { api, crashed } = client.open();
  try {
    const improving = api.optimize({ model, prompt, seed, timeLimitMs }, onText);
    return await untilAborted(Promise.race([improving, crashed]), signal);
  } finally {
    client.close();
  }
}

/** The user's own words, and a seed: the next one where they were improved and not edited since. */
function promptAndSeed({ values }: FormState): Pick<ImproveRequest, 'prompt' | 'seed'> {
  const { prompt, optimization } = values;
  const chosen = toNumber(values.seed);
  const seed = Number.isSafeInteger(chosen) && chosen >= -1 ? resolveSeed(chosen) : resolveSeed(-1);
  if (optimization === null || optimization.text !== prompt) return { prompt, seed };
  return { prompt: optimization.original, seed: (optimization.seed ?? seed) + 1 };
}
