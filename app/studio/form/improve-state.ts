import type { ErrorRecord } from '../../../lib/contract/errors';
import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';

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

export type ImproveEvent =
  | { readonly type: 'offered' }
  | { readonly type: 'started'; readonly request: ImproveRequest; readonly at: number }
  | { readonly type: 'wrote'; readonly text: string }
  | { readonly type: 'ended'; readonly record: PromptOptimization }
  | { readonly type: 'failed'; readonly error: ErrorRecord }
  /** Cancelled by the user, undone, or read. */
  | { readonly type: 'closed' };

export const notImproving: ImproveState = { status: 'idle' };

/** Pure reducer; what a run reports after it was closed changes nothing. */
export function advanceImprove(state: ImproveState, event: ImproveEvent): ImproveState {
  switch (event.type) {
    case 'offered':
      return { status: 'offering' };
    case 'started': {
      const { request, at } = event;
      return { status: 'running', request, text: '', startedAt: at };
    }
    case 'failed':
      return state.status === 'running' ? { status: 'failed', error: event.error } : state;
    case 'closed':
      return notImproving;
    default:
      return state.status === 'running' ? advanceRunning(state, event) : state;
  }
}

function advanceRunning(
  state: Extract<ImproveState, { status: 'running' }>,
  event: Extract<ImproveEvent, { type: 'wrote' | 'ended' }>,
): ImproveState {
  if (event.type === 'wrote') return { ...state, text: event.text };
  return { status: 'ended', request: state.request, record: event.record };
}

/** Whether a record has a text that replaces the prompt. */
export function isApplied({ status }: PromptOptimization): boolean {
  return status === 'used' || status === 'edited' || status === 'salvaged';
}
