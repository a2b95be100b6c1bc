import type { ComponentId, ErrorRecord, PartState, PauseReason } from '../contract';
import type { InstallProgress } from '../weights/store';

/** Everything that can happen to a part of a model. */
export type PartEvent =
  /** A download was asked for, also in the place of what is there; it waits for its turn. */
  | { readonly type: 'queued' }
  | { readonly type: 'started' }
  | ({ readonly type: 'progress' } & InstallProgress)
  /** Something to know that changes nothing: the server is waited for, or files were left out. */
  | { readonly type: 'noticed'; readonly notice: string }
  | { readonly type: 'paused'; readonly by: PauseReason; readonly error?: ErrorRecord }
  /** The stored bytes are of no use any more. */
  | { readonly type: 'restarted'; readonly notice: string }
  | { readonly type: 'verifying' }
  | { readonly type: 'completed'; readonly bytes: number; readonly bytesStored: number }
  | { readonly type: 'failed'; readonly error: ErrorRecord }
  /** Cancelled, deleted, or found to be damaged. */
  | { readonly type: 'removed'; readonly error?: ErrorRecord }
  /** A download of before this worker, or of another tab, did not come to its end. */
  | ({ readonly type: 'interrupted' } & Omit<InstallProgress, 'bytesTotal'> & {
        /** Null where nothing had come yet. */
        readonly bytesTotal: number | null;
      })
  /** The hub has said how large it is. */
  | { readonly type: 'sized'; readonly bytesTotal: number };

/** A part of which nothing is there. */
export function absentPart(component: ComponentId, bytesTotal: number | null = null): PartState {
  return { component, status: 'absent', bytesDone: 0, bytesTotal, bytesStored: 0 };
}

/**
 * The life of a part: `absent → waiting → downloading ⇄ paused → complete ⇄ verifying`, with `failed`
 * beside it; what is complete waits again when it is to be replaced. Pure. An event that is not legal in the present state returns the very same object.
 */
export function advancePart(part: PartState, event: PartEvent): PartState {
  const { component, status, bytesDone, bytesTotal, bytesStored } = part;
  /** The same bytes in another status; notices, errors and reasons are left behind. */
  const bare = { component, bytesDone, bytesTotal, bytesStored };
  const { restartNotice } = part;
  const restart = restartNotice === undefined ? {} : { restartNotice };
  const active = status === 'waiting' || status === 'downloading';
  const resting = status === 'absent' || status === 'paused' || status === 'failed';
  switch (event.type) {
    case 'queued':
      if (status === 'complete') return { ...absentPart(component), status: 'waiting' };
      return resting ? { ...bare, status: 'waiting' } : part;
    case 'started':
      return status === 'waiting' ? { ...part, status: 'downloading' } : part;
    case 'progress': {
      if (status !== 'downloading' && status !== 'verifying') return part;
      const { type: _, ...bytes } = event;
      // The next byte ends the message about a retry; the message about a restart stays.
      const notice = bytes.bytesDone === bytesDone ? part.notice : part.restartNotice;
      return { component, status, ...bytes, ...restart, notice };
    }
    case 'noticed':
      return active || status === 'complete' ? { ...part, notice: event.notice } : part;
    case 'paused':
      // A pause by the connection ends by itself; the user may make it last.
      if (!active && !(part.pausedBy === 'network' && event.by === 'user')) return part;
      return { ...bare, status: 'paused', pausedBy: event.by, ...errorOf(event.error) };
    case 'restarted':
      if (!active) return part;
      return {
        ...absentPart(component, bytesTotal),
        status,
        notice: event.notice,
        restartNotice: event.notice,
      };
    case 'verifying':
      return status === 'complete' ? { ...bare, bytesDone: 0, status: 'verifying' } : part;
    case 'completed': {
      if (status !== 'downloading' && status !== 'verifying' && status !== 'absent') return part;
      const { bytes } = event;
      const done = { bytesDone: bytes, bytesTotal: bytes, bytesStored: event.bytesStored };
      const notice = part.restartNotice;
      return { component, status: 'complete', ...done, notice };
    }
    case 'failed':
      return active ? { ...bare, status: 'failed', error: event.error } : part;
    case 'removed':
      return { ...absentPart(component, bytesTotal), ...errorOf(event.error) };
    case 'interrupted': {
      if (status !== 'absent') return part;
      const { type: _, ...bytes } = event;
      return { component, status: 'paused', ...bytes, pausedBy: 'interrupted' };
    }
    case 'sized':
      return bytesTotal === event.bytesTotal ? part : { ...part, bytesTotal: event.bytesTotal };
  }
}

function errorOf(error: ErrorRecord | undefined): { readonly error?: ErrorRecord } {
  return error === undefined ? {} : { error };
}
