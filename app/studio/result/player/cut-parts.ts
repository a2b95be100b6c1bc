import type { Completed } from '../../../../lib/contract';
import { readVideo } from '../../../../lib/predictions/videos';
import type { CutVideo } from '../../../../lib/video/cut';

/** A finished video that is cut or joined with others. */
export interface VideoPart {
  readonly row: Completed;
  readonly file: Blob;
  readonly frames: number;
}

/** Frames of a finished video: from the frame `from`, counted from 0, to before the frame `to`. */
export interface UsedPart {
  readonly row: Completed;
  readonly from: number;
  readonly to: number;
}

/** Opens the files of finished videos. @throws KinoraError `FILE_UNREADABLE` */
export async function openParts(videos: readonly Completed[]): Promise<readonly VideoPart[]> {
  return Promise.all(
    videos.map(async (row) => {
      const { videoFile, frames } = row.result;
      return { row, file: await readVideo(videoFile), frames };
    }),
  );
}

/**
 * Frames `from` to before `to` of videos that continue each other, as one MP4.
 *
 * @throws KinoraError of `cutVideo`
 */
export async function cutParts(
  parts: readonly VideoPart[],
  range: { readonly from: number; readonly to: number },
  options: {
    readonly signal: AbortSignal;
    readonly onFrame?: (frames: number) => void;
  },
): Promise<CutVideo & { readonly used: readonly UsedPart[] }> {
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const { cutVideo, piecesOf } = await import('../../../../lib/video/cut');
  const pieces = piecesOf(parts, range.from, range.to);
  const files = pieces.map(({ part, from, to }) => ({ file: part.file, from, to }));
  const used = pieces.map(({ part, from, to }) => ({ row: part.row, from, to }));
  return { ...(await cutVideo(files, options)), used };
}
