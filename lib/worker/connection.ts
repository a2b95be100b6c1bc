import type { ErrorRecord, Parameters, ProgressEvent, RunOptions } from '../contract';
import type { SkipReason, WorkerIdentity } from '../contract/v3';
import { advanceProgress, initialProgress, type RunProgress } from '../predictions/run-state';
import type { ServedJob } from './api';

/** Why waiting jobs were not given to this worker, each with how many there are. */
export type Skipped = Partial<Record<SkipReason, number>>;

/** The job that is being worked on. Its prompt is not here: the page does not show it. */
export interface CurrentJob {
  readonly id: string;
  /** Counts from 1. */
  readonly attempt: number;
  readonly size: Parameters['size'];
  readonly duration: number;
  readonly loras: number;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

/** What happens when the current job has ended. */
export type Next = 'claim' | 'pause';

interface Connected {
  /** Identity of the token. */
  readonly identity: WorkerIdentity;
}

/** The worker's connection to its relay: where it stands, and what is known there. */
export type Connection =
  /** `error`: why it ended, unless the person ended it. */
  | { readonly status: 'disconnected'; readonly error: ErrorRecord | null }
  | { readonly status: 'connecting' }
  /** The relay does not take this worker: nothing is tried again by itself. */
  | { readonly status: 'refused'; readonly error: ErrorRecord }
  /** `at`: when it is tried again, milliseconds since the epoch. */
  | { readonly status: 'reconnecting'; readonly at: number; readonly reason: string }
  | (Connected & { readonly status: 'idle'; readonly skipped: Skipped })
  /** `error`: what has to be put right first, where it paused itself. */
  | (Connected & { readonly status: 'paused'; readonly error: ErrorRecord | null })
  /** The studio, or another tab, has the GPU. */
  | (Connected & { readonly status: 'waiting' })
  | (Connected & {
      readonly status: 'working';
      readonly job: CurrentJob;
      readonly progress: RunProgress;
      /** Whether the relay answers the heartbeats. */
      readonly answered: boolean;
      readonly next: Next;
    })
  | (Connected & {
      readonly status: 'uploading';
      readonly job: CurrentJob;
      readonly bytes: number;
      readonly answered: boolean;
      readonly next: Next;
    });

/** Everything that can happen to the connection. */
export type ConnectionEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly identity: WorkerIdentity }
  /** Identity of the token now: the length of the queue changes. */
  | { readonly type: 'identity'; readonly identity: WorkerIdentity }
  | { readonly type: 'nothing'; readonly skipped: Skipped }
  | { readonly type: 'gpuBusy' }
  | { readonly type: 'pausing' }
  | { readonly type: 'paused'; readonly error: ErrorRecord | null }
  | { readonly type: 'resumed' }
  | {
      readonly type: 'claimed';
      readonly job: CurrentJob;
      readonly parameters: Pick<Parameters, 'num_inference_steps'>;
      readonly options: RunOptions;
    }
  | { readonly type: 'progress'; readonly event: ProgressEvent }
  | { readonly type: 'heartbeat'; readonly answered: boolean }
  | { readonly type: 'uploading'; readonly job: CurrentJob; readonly bytes: number }
  | { readonly type: 'ended'; readonly job: ServedJob }
  | { readonly type: 'unreachable'; readonly at: number; readonly reason: string }
  | { readonly type: 'refused'; readonly error: ErrorRecord }
  | { readonly type: 'disconnected'; readonly error: ErrorRecord | null };

/** An event as it leaves the serving worker. */
export type ServingEvent = ConnectionEvent;

/** The state before the first connection. */
export const disconnected: Connection = { status: 'disconnected', error: null };

/** The connection as one pure reducer; events that do not fit leave it as it is. */
export function advanceConnection(state: Connection, event: ConnectionEvent): Connection {
  switch (event.type) {
    case 'connecting':
      return { status: 'connecting' };
    case 'disconnected':
      return { status: 'disconnected', error: event.error };
    case 'refused':
      return { status: 'refused', error: event.error };
    case 'unreachable':
      if (state.status === 'disconnected' || state.status === 'refused') return state;
      return { status: 'reconnecting', at: event.at, reason: event.reason };
    case 'connected': {
      if (state.status !== 'connecting' && state.status !== 'reconnecting') return state;
      return { status: 'idle', identity: event.identity, skipped: {} };
    }
    default:
      return isConnected(state) ? advanceConnected(state, event) : state;
  }
}

/** Whether the relay has taken this worker, and it can be paused. */
export function isConnected(state: Connection): state is ConnectedState {
  return 'identity' in state;
}

type ConnectedState = Extract<Connection, Connected>;
type ConnectedEvent = Exclude<
  ConnectionEvent,
  { type: 'connecting' | 'disconnected' | 'refused' | 'unreachable' | 'connected' }
>;

function advanceConnected(state: ConnectedState, event: ConnectedEvent): Connection {
  const base = { identity: state.identity };
  const busy = state.status === 'working' || state.status === 'uploading';
  switch (event.type) {
    case 'identity':
      return { ...state, identity: event.identity };
    case 'nothing':
      if (busy || state.status === 'paused') return state;
      return { ...base, status: 'idle', skipped: event.skipped };
    case 'gpuBusy':
      return busy || state.status === 'paused' ? state : { ...base, status: 'waiting' };
    case 'pausing':
      return busy ? { ...state, next: 'pause' } : state;
    case 'paused':
      return busy ? state : { ...base, status: 'paused', error: event.error };
    case 'resumed':
      if (busy) return state.next === 'pause' ? { ...state, next: 'claim' } : state;
      return state.status === 'paused' ? { ...base, status: 'idle', skipped: {} } : state;
    case 'claimed': {
      if (busy) return state;
      const { job, parameters, options } = event;
      const progress = initialProgress(parameters, options);
      return { ...base, status: 'working', job, progress, answered: true, next: 'claim' };
    }
    case 'progress':
      if (state.status !== 'working') return state;
      return { ...state, progress: advanceProgress(state.progress, event.event) };
    case 'heartbeat':
      return busy && state.answered !== event.answered
        ? { ...state, answered: event.answered }
        : state;
    case 'uploading': {
      const { job, bytes } = event;
      const next = busy ? state.next : 'claim';
      return { ...base, status: 'uploading', job, bytes, answered: true, next };
    }
    case 'ended':
      return busy ? { ...base, status: 'idle', skipped: {} } : state;
  }
}
