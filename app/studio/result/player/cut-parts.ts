import type { Completed } from '../../../../lib/contract/prediction';
import type { Safety } from '../../../../lib/contract/safety';
import { readVideo } from '../../../../lib/predictions/videos';
import type { CutVideo } from '../../../../lib/video/cut';

/** A finished video that is cut or joined with others. */
export interface VideoPart {
  readonly file: Blob;
  readonly frames: number;
  /** The file may hold an older verdict. */
  readonly safety: Safety | undefined;
}

/** Opens the files of finished videos. @throws KinoraError `FILE_UNREADABLE` */
export async function openParts(videos: readonly Completed[]): Promise<readonly VideoPart[]> {
  return Promise.all(
    videos.map(async ({ result: { videoFile, frames, safety } }) => ({
      file: await readVideo(videoFile),
      frames,
      safety,
    })),
  );
}

/**
 * Frames `from` to before `to` of videos that continue each other, as one MP4 that says what it is made of.
 *
 * @param options.id of the new video
 * @throws KinoraError of `cutVideo` and `readVideoMetadata`
 */
export async function cutParts(
  parts: readonly VideoPart[],
  range: { readonly from: number; readonly to: number },
  options: {
    readonly id: string;
    readonly signal: AbortSignal;
    readonly onFrame?: (frames: number) => void;
  },
): Promise<CutVideo> {
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const [{ cutVideo, piecesOf }, { joinMetadata, readVideoMetadata }] = await Promise.all([
    import('../../../../lib/video/cut'),
    import('../../../../lib/video/metadata'),
  ]);
  const pieces = piecesOf(parts, range.from, range.to);
  const pieceMetadata = pieces.map(async ({ part: { file, safety }, from, to }) => {
    const metadata = await readVideoMetadata(file);
    return { metadata: { ...metadata, ...(safety && { safety }) }, from, to };
  });
  const { id, ...writing } = options;
  const metadata = { ...joinMetadata(await Promise.all(pieceMetadata)), id };
  const files = pieces.map(({ part, from, to }) => ({ file: part.file, from, to }));
  return cutVideo(files, { metadata, ...writing });
}
