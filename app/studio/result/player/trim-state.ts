import type { ErrorRecord } from '../../../../lib/contract/errors';

/** Why frames have to be encoded again: see `encodingReason` of `lib/video/cut`. */
export type EncodingReason = 'order' | 'configuration' | 'start';

/** The video that is trimmed, and which of its frames are kept: from `from` to before `to`. */
interface Range {
  readonly video: Blob;
  readonly frames: number;
  /** Why these frames of it have to be encoded again; null where they stay as they are. */
  readonly reasonFor: (from: number, to: number) => EncodingReason | null;
  readonly from: number;
  readonly to: number;
}

/** Trimming a video, from opening its files to writing the result. */
export type TrimState =
  | { readonly status: 'opening' }
  | { readonly status: 'failed'; readonly error: ErrorRecord }
  | (Range & { readonly status: 'ready'; readonly problem: ErrorRecord | null })
  | (Range & { readonly status: 'writing'; readonly done: number });

export type TrimEvent =
  | ({ readonly type: 'opened' } & Pick<Range, 'video' | 'frames' | 'reasonFor'>)
  | { readonly type: 'failed'; readonly error: ErrorRecord }
  /** Frames from 0; `last` is kept. */
  | { readonly type: 'startMoved'; readonly first: number }
  | { readonly type: 'endMoved'; readonly last: number }
  | { readonly type: 'started' }
  | { readonly type: 'progressed'; readonly done: number };

/** Pure reducer of the dialog. At least one frame is kept. */
export function changeTrim(state: TrimState, event: TrimEvent): TrimState {
  if (event.type === 'opened') {
    const { type: _, ...opened } = event;
    return { ...opened, status: 'ready', from: 0, to: event.frames, problem: null };
  }
  if (event.type === 'failed') {
    if (state.status !== 'writing') return { status: 'failed', error: event.error };
    return { ...rangeOf(state), status: 'ready', problem: event.error };
  }
  if (state.status === 'ready') {
    const { from, to, frames } = state;
    switch (event.type) {
      case 'startMoved':
        return { ...state, from: Math.min(Math.max(0, event.first), to - 1) };
      case 'endMoved':
        return { ...state, to: Math.max(from + 1, Math.min(event.last + 1, frames)) };
      case 'started':
        return { ...rangeOf(state), status: 'writing', done: 0 };
    }
  }
  if (state.status === 'writing' && event.type === 'progressed') {
    return { ...state, done: event.done };
  }
  return state;
}

function rangeOf({ video, frames, reasonFor, from, to }: Range): Range {
  return { video, frames, reasonFor, from, to };
}
