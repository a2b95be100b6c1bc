import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Size } from '../../lib/contract';
import type { Preview, RunProgress } from '../../lib/predictions/run-state';
import { t } from '../texts';
import { useReducedMotion } from './browser';
import { percentDone, progressText, runPhases } from './run-progress';
import { previewBlurReason } from './safety-text';
import { Veil } from './veil';

/** Preview, phases and progress bar of a run. */
export function RunStage(props: {
  progress: RunProgress;
  /** Of its video. */
  size: Size;
  /** The images of the request, over which the preview becomes visible while it becomes clear. */
  pictures?: ReactNode;
}) {
  const { progress, size, pictures } = props;
  const { phase, clip, clips, preview, inputCheck, share } = progress;
  const [revealed, setRevealed] = useState(false);
  const phases = runPhases(progress);
  const current = phase === null ? -1 : phases.indexOf(phase);
  return (
    <>
      <div className="screen preview-place" data-size={size}>
        {pictures}
        {preview && (
          <Veil
            what="preview"
            reason={previewBlurReason(inputCheck)}
            revealed={revealed}
            onToggle={() => setRevealed(!revealed)}
          >
            <LatentPreview preview={preview} opacity={pictures ? clarity(progress) : 1} />
          </Veil>
        )}
        {pictures && phase && (
          <p
            className="run-phase overlay text-s"
            aria-hidden="true"
            data-text={progressText(progress)}
          />
        )}
      </div>
      <ol className="phases flex gap-4-16 wrap muted text-m">
        {phases.map((name, index) => (
          <li
            key={name}
            className="row gap-6"
            data-state={index < current ? 'done' : index === current ? 'now' : 'later'}
            aria-current={index === current ? 'step' : undefined}
          >
            {t(`names.phase.${name}`)}
          </li>
        ))}
      </ol>
      <progress
        aria-label={phase ? t(`names.phase.${phase}`) : t('shared.starting')}
        value={share || undefined}
        max={1}
      />
      <p className="measure numbers">
        {share > 0 && `${percentDone(progress) ?? 0} % · `}
        <span>{progressText(progress)}</span>
        {clips > 1 && ` · ${t('shared.clip', { clip: clip + 1, clips })}`}
      </p>
    </>
  );
}

/** How much a preview shows, 0 … 1: little in the first steps, and less where the latents are small. */
function clarity({ phase, step, steps, preview }: RunProgress): number {
  const done = phase === 'denoise' ? step / steps : 1;
  return done ** 2 * Math.min(1, Math.sqrt((preview?.width ?? 0) / 80));
}

/** The latents have one frame per four frames of the video, so six of them are one second. */
const frameMs = 1000 / 6;

/** An animated preview of the latents; a still image if the user prefers reduced motion. */
function LatentPreview({ preview, opacity }: { preview: Preview; opacity: number }) {
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
    // The frame follows from the clock, so that a new preview continues the motion of the last one.
    const play = () => draw(Math.floor(performance.now() / frameMs) % count);
    play();
    const timer = setInterval(play, frameMs);
    return () => clearInterval(timer);
  }, [preview, width, height, still]);
  return (
    <canvas
      ref={canvas}
      className="preview"
      style={{ opacity }}
      width={width}
      height={height}
      role="img"
      aria-label={t('shared.preview')}
    />
  );
}
