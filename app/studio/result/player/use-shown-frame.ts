import { type RefObject, useEffect, useState } from 'react';

/** Seconds from the start to the middle of a frame: inside of it however its time was rounded. */
export function frameTime(frame: number, frameRate: number): number {
  return (frame + 0.5) / frameRate;
}

/**
 * The frame that a player shows, from 0. While it plays, the component is rendered for each frame.
 *
 * @param url of the video; the player is there when it is set
 * @param frameRate frames per second of the video
 */
export function useShownFrame(
  player: RefObject<HTMLVideoElement | null>,
  url: string | null,
  frameRate: number,
): number {
  const [frame, setFrame] = useState(0);
  useEffect(() => {
    const video = player.current;
    if (!video || !url) return;
    let handle = 0;
    const onFrame = (_now: number, { mediaTime }: VideoFrameCallbackMetadata) => {
      // Firefox goes on counting where the video begins again.
      const frames = Math.round(video.duration * frameRate);
      setFrame(Math.round(mediaTime * frameRate) % frames);
      handle = video.requestVideoFrameCallback(onFrame);
    };
    handle = video.requestVideoFrameCallback(onFrame);
    // A frame that is shown just before the next request has no callback: where it was sought, its time is known.
    const onSeeked = () => setFrame(Math.floor(video.currentTime * frameRate + 0.01));
    video.addEventListener('seeked', onSeeked);
    return () => {
      video.cancelVideoFrameCallback(handle);
      video.removeEventListener('seeked', onSeeked);
    };
  }, [player, url, frameRate]);
  return frame;
}
