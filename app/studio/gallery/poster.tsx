import { useLiveQuery } from 'dexie-react-hooks';
import { useEffect, useState } from 'react';
import type { Prediction } from '../../../lib/contract';
import { savePoster } from '../../../lib/predictions/poster';
import { readVideo } from '../../../lib/predictions/videos';
import { getRunner } from '../../runner';
import { useObjectUrl, useReducedMotion } from '../../shared/browser';
import { Picture } from '../../shared/icons';
import { blurReason, isInputFlagged } from '../../shared/safety-text';

type Completed = Extract<Prediction, { status: 'completed' }>;

/** The picture of a card: a frame of the video, or the start image. While `active`, the video plays. */
export function Poster({ prediction, active }: { prediction: Prediction; active: boolean }) {
  const completed = prediction.status === 'completed' ? prediction : null;
  const picture = useLiveQuery(() => findPicture(prediction.id), [prediction.id]);
  const url = useObjectUrl(picture?.blob);
  const isStartImage = picture?.isFrame === false;
  const still = useReducedMotion();
  useMissingPoster(isStartImage ? completed : null);
  const safety = completed?.result.safety;
  const isFlagged =
    blurReason(safety) !== null || (isStartImage && safety !== undefined && isInputFlagged(safety));
  return (
    <span className="poster relative clip wide on-sunken" data-blurred={isFlagged}>
      {url && <Picture src={url} alt="" />}
      {completed && active && !isFlagged && !still && (
        <HoverVideo file={completed.result.videoFile} />
      )}
    </span>
  );
}

/** The poster, or the start image where there is none. */
async function findPicture(id: string): Promise<{ blob: Blob | undefined; isFrame: boolean }> {
  const { store } = getRunner();
  const poster = await store.poster(id);
  if (poster) return { blob: poster, isFrame: true };
  return { blob: (await store.source(id))?.thumbnail, isFrame: false };
}

/** Ids of the videos whose poster was made here, or could not be made. */
const tried = new Set<string>();
/** Posters are made one at a time: each decodes a video. */
let pending: Promise<unknown> = Promise.resolve();

/** Makes the poster of a video of an earlier version, or of a page that was closed too early. */
function useMissingPoster(prediction: Completed | null): void {
  useEffect(() => {
    if (!prediction || tried.has(prediction.id)) return;
    tried.add(prediction.id);
    pending = pending.then(() => savePoster(getRunner().store, prediction));
  }, [prediction]);
}

function HoverVideo({ file }: { file: string }) {
  const [video, setVideo] = useState<File | null>(null);
  const url = useObjectUrl(video);
  useEffect(() => {
    let current = true;
    readVideo(file).then(
      (blob) => current && setVideo(blob),
      () => {}, // The stage says that it is missing.
    );
    return () => {
      current = false;
    };
  }, [file]);
  return url && <video src={url} autoPlay muted loop playsInline />;
}
