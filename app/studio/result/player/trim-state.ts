/** Frames of a video that are kept: from `from` to before `to`, at least one. */
export interface FrameRange {
  readonly from: number;
  readonly to: number;
}

/** The range with another first frame. */
export function withStart({ to }: FrameRange, first: number): FrameRange {
  return { from: Math.min(Math.max(0, first), to - 1), to };
}

/** The range with another last frame. @param frames of the whole video */
export function withEnd({ from }: FrameRange, last: number, frames: number): FrameRange {
  return { from, to: Math.max(from + 1, Math.min(last + 1, frames)) };
}
