import { type RefObject, useEffect, useState } from 'react';
import { framesPerSecond } from '../../../../lib/contract/parameters';

/** Seconds from the start to the middle of a frame: inside of it however its time was rounded. */
export function frameTime(frame: number): number {
  return (frame + 0.5) / framesPerSecond;
}

/**
 * The frame that a player shows, from 0. While it plays, the component is rendered for each frame.
 *
 * @param url of the video; the player is there when it is set
 */
export function useShownFrame(
  player: RefObject<HTMLVideoElement | null>,
  url: string | null,
): number {
  const [frame, setFrame] = useState(0);
  useEffect(() => {
    const video = player.current;
    if (!video || !url) return;
    let handle = 0;
    const onFrame = (_now: number, { mediaTime }: VideoFrameCallbackMetadata) => {
      // Firefox goes on counting where the video begins again.
      const frames = Math.round(video.duration * framesPerSecond);
      setFrame(Math.round(mediaTime * framesPerSecond) % frames);
      handle = video.requestVideoFrameCallback(onFrame);
    };
    handle = video.requestVideoFrameCallback(onFrame);
    // A frame that is shown just before the next request has no callback: where it was sought, its time is known.
    const onSeeked = () => setFrame(Math.floor(video.currentTime * framesPerSecond + 0.01));
    video.addEventListener('seeked', onSeeked);
    return () => {
      video.cancelVideoFrameCallback(handle);
      video.removeEventListener('seeked', onSeeked);
    };
  }, [player, url]);
  return frame;
}
