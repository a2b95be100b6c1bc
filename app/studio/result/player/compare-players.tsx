import { useEffect, useRef, useState } from 'react';
import type { Completed } from '../../../../lib/contract';
import { useObjectUrl } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { Problem } from '../../../shared/messages';
import { blurReason } from '../../../shared/safety-text';
import { Veil } from '../../../shared/veil';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { useVideo } from '../use-video';
import { frameTime, useShownFrame } from './use-shown-frame';

/** Two players may be apart by so many frames before one is moved to the other. */
const maxDrift = 1.5;

/** Two videos over each other: a slider divides them, one scrubber moves both. The shorter one waits at its end. */
export function ComparePlayers({ first, second }: { first: Completed; second: Completed }) {
  const left = useRef<HTMLVideoElement>(null);
  const right = useRef<HTMLVideoElement>(null);
  const [leftVideo, rightVideo] = [
    useVideo(first.result.videoFile),
    useVideo(second.result.videoFile),
  ];
  const leftUrl = useObjectUrl(leftVideo.status === 'ready' ? leftVideo.file : null);
  const rightUrl = useObjectUrl(rightVideo.status === 'ready' ? rightVideo.file : null);
  const ready = leftUrl !== null && rightUrl !== null;
  const [divider, setDivider] = useState(50);
  const [playing, setPlaying] = useState(false);
  const reason = blurReason(first.result.safety) ?? blurReason(second.result.safety);
  const [revealed, setRevealed] = useState(false);
  const frames = Math.max(first.result.frames, second.result.frames);
  /** The longer one has the time; the other one follows. */
  const isLeftLonger = first.result.frames === frames;
  const [longer, shorter] = isLeftLonger ? [left, right] : [right, left];
  const { frameRate } = (isLeftLonger ? first : second).result;
  const shown = useShownFrame(
    longer,
    ready ? (isLeftLonger ? leftUrl : rightUrl) : null,
    frameRate,
  );

  useEffect(() => {
    const [leader, follower] = [longer.current, shorter.current];
    if (!playing || !leader || !follower) return;
    const time = frameTime(shown, frameRate);
    const apart = Math.abs(follower.currentTime - time) > maxDrift / frameRate;
    if (apart && !follower.seeking && time < follower.duration) follower.currentTime = time;
  }, [playing, shown, longer, shorter, frameRate]);

  useEffect(() => {
    const leader = ready ? longer.current : null;
    const onEnded = () => setPlaying(false);
    leader?.addEventListener('ended', onEnded);
    return () => leader?.removeEventListener('ended', onEnded);
  }, [ready, longer]);

  const seek = (frame: number) => {
    for (const [player, { result }] of [[left, first] as const, [right, second] as const]) {
      const at = frameTime(Math.min(frame, result.frames - 1), result.frameRate);
      if (player.current) player.current.currentTime = at;
    }
  };
  const pause = () => {
    left.current?.pause();
    right.current?.pause();
    setPlaying(false);
  };
  const play = () => {
    seek(shown >= frames - 1 ? 0 : shown);
    setPlaying(true);
    // The browser may refuse to play.
    Promise.all([left.current?.play(), right.current?.play()]).catch(() => setPlaying(false));
  };

  for (const video of [leftVideo, rightVideo]) {
    if (video.status === 'missing') return <Problem error={video.error} />;
  }
  const media = { muted: true, playsInline: true, preload: 'auto' } as const;
  return (
    <>
      <div className="screen" data-size={first.result.size}>
        <Veil
          what="video"
          reason={reason}
          revealed={revealed}
          onToggle={() => {
            if (revealed) pause();
            setRevealed(!revealed);
          }}
        >
          {ready && (
            <div className="compare-screen relative full tall">
              <video
                ref={right}
                src={rightUrl}
                {...media}
                aria-label={t('result.rightSeed', { seed: `${second.result.seed}` })}
              />
              <video
                ref={left}
                src={leftUrl}
                {...media}
                aria-label={t('result.leftSeed', { seed: `${first.result.seed}` })}
                style={{ clipPath: `inset(0 ${100 - divider}% 0 0)` }}
              />
              <span className="compare-line" style={{ left: `${divider}%` }} aria-hidden="true" />
              <input
                type="range"
                className="compare-divider full tall"
                aria-label={t('result.divider')}
                aria-valuetext={t('result.percentLeft', { percent: divider })}
                min={0}
                max={100}
                value={divider}
                onChange={(event) => setDivider(event.target.valueAsNumber)}
              />
            </div>
          )}
        </Veil>
      </div>
      <div className="compare-controls row wrap">
        <Button disabled={!ready} onClick={playing ? pause : play}>
          {playing ? t('result.pause') : t('result.play')}
        </Button>
        <input
          type="range"
          aria-label={t('result.frame')}
          aria-valuetext={t('shared.frame', { frame: shown + 1, frames })}
          min={0}
          max={frames - 1}
          value={Math.min(shown, frames - 1)}
          disabled={!ready}
          onChange={(event) => {
            pause();
            seek(event.target.valueAsNumber);
          }}
        />
        <output className="frame-count text-m numbers">
          {t('shared.frame', { frame: shown + 1, frames })}
        </output>
      </div>
    </>
  );
}
