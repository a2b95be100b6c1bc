import { useEffect, useRef } from 'react';
import type { Preview } from '../../lib/predictions/run-state';
import { useReducedMotion } from './use-reduced-motion';

/** The latent has one frame per four of the video, so six of them pass in a second. */
const frameMs = 1000 / 6;

/** The video as it emerges: a small moving strip; one still frame where motion is unwanted. */
export function LatentPreview({ preview }: { preview: Preview }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const still = useReducedMotion();
  const { width, height } = preview;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!context) return;
    const { pixels, count } = preview;
    const draw = (frame: number) => {
      const start = frame * width * height * 4;
      const data = pixels.subarray(start, start + width * height * 4);
      context.putImageData(new ImageData(data, width, height), 0, 0);
    };
    if (still || count === 1) {
      draw(0);
      return;
    }
    // By the clock and not from zero, so that a new strip goes on where the old one was.
    const play = () => draw(Math.floor(performance.now() / frameMs) % count);
    play();
    const timer = setInterval(play, frameMs);
    return () => clearInterval(timer);
  }, [preview, width, height, still]);
  return (
    <canvas
      ref={canvas}
      className="preview"
      {...{ width, height }}
      role="img"
      aria-label="Preview of the video so far"
    />
  );
}
