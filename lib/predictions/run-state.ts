import type {
  CheckpointInfo,
  Continuation,
  KernelReplacement,
  MemoryReport,
  Parameters,
  Phase,
  Prediction,
  ProgressEvent,
  RunOptions,
} from '../contract';

/** What an event of the engine tells. */
type Facts<Type extends ProgressEvent['type']> = Omit<
  Extract<ProgressEvent, { type: Type }>,
  'type'
>;

/** The animated preview of the latents. */
export type Preview = Extract<ProgressEvent, { type: 'preview' }>;

/** Progress of a running generation; null means not yet known. */
export interface RunProgress {
  readonly phase: Phase | null;
  /** Counts from 0. */
  readonly clip: number;
  readonly clips: number;
  readonly bytes: { readonly done: number; readonly total: number } | null;
  /** Set while the kernels are measured on this GPU. */
  readonly tuning: { readonly done: number; readonly total: number } | null;
  /** Finished steps of this clip. */
  readonly step: number;
  readonly steps: number;
  readonly secondsPerStep: number | null;
  /** Share of the expected time of the whole run that has passed, 0 … 1. */
  readonly share: number;
  readonly secondsRemaining: number | null;
  readonly frame: number;
  readonly frames: number;
  /** Set if this clip is decoded in tiles. */
  readonly tile: Facts<'tile'> | null;
  readonly preview: Preview | null;
  /** How the video is made, in one line, where that is not what the request says. */
  readonly sampling: string | null;
  /** The kernels that compute in place of those that were asked for; null where those compute. */
  readonly kernels: KernelReplacement | null;
  /** What the safety checker says of the input image. */
  readonly inputCheck: Facts<'input-check'> | null;
  /** Whether the safety checker looks at this run's frames. */
  readonly checks: boolean;
  /** Whether the prompt is optimised in this run. */
  readonly optimises: boolean;
  /** The latest memory plan. */
  readonly memory: MemoryReport | null;
  /** The checkpoint from which the run goes on after an interruption; null where it would start anew. */
  readonly checkpoint: CheckpointInfo | null;
  /** The fault of the saved state of this run. */
  readonly checkpointProblem: Facts<'checkpoint-problem'> | null;
}

/** State of the generation of this tab. */
export type RunState =
  | { readonly status: 'idle' }
  | {
      readonly status: 'waiting';
      readonly prediction: Prediction;
      /** The use of a saved run; null for a new run. */
      readonly continuation: Continuation | null;
      /** True while another tab holds the GPU lock. */
      readonly elsewhere: boolean;
      readonly ending: 'cancel' | null;
    }
  | {
      readonly status: 'running';
      readonly prediction: Prediction;
      readonly continuation: Continuation | null;
      /** Milliseconds since the epoch. */
      readonly startedAt: number;
      readonly progress: RunProgress;
      /** `pause`: after the current step. */
      readonly ending: 'cancel' | 'finish' | 'pause' | null;
    };

export type RunEvent =
  | {
      readonly type: 'created';
      readonly prediction: Prediction;
      readonly continuation: Continuation | null;
    }
  | { readonly type: 'queued' }
  | { readonly type: 'started'; readonly at: number }
  | { readonly type: 'progress'; readonly event: ProgressEvent }
  | { readonly type: 'ending'; readonly how: 'cancel' | 'finish' | 'pause' }
  | { readonly type: 'ended' };

/** The state in which nothing runs. */
export const idle: RunState = { status: 'idle' };

/** Pure reducer of the run. @returns the same state if the event is not valid in it */
export function advanceRun(state: RunState, event: RunEvent): RunState {
  switch (event.type) {
    case 'created': {
      if (state.status !== 'idle') return state;
      const { prediction, continuation } = event;
      return { status: 'waiting', prediction, continuation, elsewhere: false, ending: null };
    }
    case 'queued':
      return state.status === 'waiting' ? { ...state, elsewhere: true } : state;
    case 'started': {
      if (state.status !== 'waiting') return state;
      const { prediction, continuation, ending } = state;
      const initial = initialProgress(prediction.parameters, prediction.options);
      const progress = { ...initial, checkpoint: checkpointOf(state) };
      return { status: 'running', prediction, continuation, startedAt: event.at, progress, ending };
    }
    case 'progress':
      if (state.status !== 'running') return state;
      return {
        ...state,
        progress: advanceProgress(state.progress, event.event),
        // A run that cannot be saved goes on, although it was to be paused.
        ending: state.ending === 'pause' && isUnsaved(event.event) ? null : state.ending,
      };
    case 'ending':
      if (state.status === 'idle') return state;
      if (event.how === 'cancel') return { ...state, ending: 'cancel' };
      // A run that is being cancelled cannot be finished early or paused.
      if (state.status !== 'running' || state.ending === 'cancel') return state;
      return { ...state, ending: event.how };
    case 'ended':
      return idle;
  }
}

function isUnsaved(event: ProgressEvent): boolean {
  return event.type === 'checkpoint-problem' && event.problem === 'unsaved';
}

function checkpointOf(state: Extract<RunState, { status: 'waiting' }>): CheckpointInfo | null {
  const { prediction, continuation } = state;
  return continuation === 'resume' && prediction.status === 'interrupted'
    ? prediction.checkpoint
    : null;
}

/** The progress at the start: only what the request says is known. */
export function initialProgress(
  parameters: Pick<Parameters, 'num_inference_steps'>,
  { safetyChecker = false }: RunOptions = {},
): RunProgress {
  return {
    phase: null,
    clip: 0,
    clips: 1,
    bytes: null,
    tuning: null,
    step: 0,
    steps: parameters.num_inference_steps,
    secondsPerStep: null,
    share: 0,
    secondsRemaining: null,
    frame: 0,
    frames: 0,
    tile: null,
    preview: null,
    sampling: null,
    kernels: null,
    inputCheck: null,
    checks: safetyChecker,
    optimises: false,
    memory: null,
    checkpoint: null,
    checkpointProblem: null,
  };
}

/** Pure reducer of the progress: applies an event of the engine. */
export function advanceProgress(progress: RunProgress, event: ProgressEvent): RunProgress {
  switch (event.type) {
    case 'phase': {
      const { phase, clip, clips } = event;
      const step =
        phase === 'denoise' || clip !== progress.clip ? firstStep(progress, clip) : progress.step;
      const optimises = progress.optimises || phase === 'optimise';
      const none = { bytes: null, tuning: null, tile: null };
      return { ...progress, phase, clip, clips, step, optimises, ...none };
    }
    case 'bytes':
      return { ...progress, bytes: { done: event.bytesDone, total: event.bytesTotal } };
    case 'tuning': {
      const { done, total } = event;
      return { ...progress, tuning: done < total ? { done, total } : null };
    }
    case 'step':
    case 'frame':
    case 'estimate': {
      const { type: _, ...facts } = event;
      return { ...progress, ...facts };
    }
    case 'tile': {
      const { type: _, ...tile } = event;
      return { ...progress, tile };
    }
    case 'preview':
      return { ...progress, preview: event };
    case 'sampling':
      return { ...progress, sampling: event.sentence };
    case 'kernels': {
      const { type: _, ...kernels } = event;
      return { ...progress, kernels };
    }
    case 'input-check': {
      const { type: _, ...inputCheck } = event;
      return { ...progress, inputCheck };
    }
    case 'plan':
      return { ...progress, memory: event.memory };
    case 'checkpoint-problem': {
      const { type: _, ...checkpointProblem } = event;
      return { ...progress, checkpoint: null, checkpointProblem };
    }
    case 'checkpoint':
      return { ...progress, checkpoint: event.checkpoint };
    case 'check':
    case 'memory':
    case 'unsaved-video':
      return progress;
  }
}

/** Steps of a clip that are done before the run reports one. */
function firstStep({ checkpoint }: RunProgress, clip: number): number {
  return checkpoint?.clip === clip ? checkpoint.step : 0;
}
