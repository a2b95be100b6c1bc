import { useEffect, useId, useRef, useState } from 'react';
import type { Completed } from '../../../../lib/contract';
import { Modal } from '../../../models/modal';
import { getRunner } from '../../../runner';
import { useObjectUrl } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { Switch } from '../../../shared/fields';
import { Problem } from '../../../shared/messages';
import { blurReason } from '../../../shared/safety-text';
import { Veil } from '../../../shared/veil';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { TaskStatus, useTask } from '../../../shared/task';
import { cutParts, openParts } from './cut-parts';
import { keepVideo } from './keep-video';
import { withEnd, withStart } from './trim-state';
import { frameTime, useShownFrame } from './use-shown-frame';

/** Trims a finished video, and joins it with the ones that it continues. */
export function TrimDialog(props: {
  /** The video and before it the ones that it continues. */
  chain: readonly Completed[];
  /** The result was stored as a video of its own. */
  onKept: (id: string) => void;
  onClose: () => void;
}) {
  const { chain, onKept, onClose } = props;
  const earlier = chain.length - 1;
  const [joins, setJoins] = useState(earlier > 0);
  return (
    <Modal
      title={earlier > 0 ? t('result.joinAndTrim') : t('result.trim')}
      width={1080}
      close={null}
      onClose={onClose}
    >
      {earlier > 0 && (
        <Switch
          name={t('result.beginWith', { count: earlier })}
          checked={joins}
          onChange={setJoins}
        />
      )}
      <Trimmer
        key={String(joins)}
        videos={joins ? chain : chain.slice(-1)}
        onKept={onKept}
        onClose={onClose}
      />
    </Modal>
  );
}

function Trimmer(props: {
  videos: readonly Completed[];
  onKept: (id: string) => void;
  onClose: () => void;
}) {
  const { onKept, onClose } = props;
  const [videos] = useState(props.videos);
  const [opened, setOpened] = useState<Awaited<ReturnType<typeof openVideo>> | null>(null);
  const [range, setRange] = useState({ from: 0, to: 0 });
  const { from, to } = range;
  const task = useTask();
  const { run } = task;
  const player = useRef<HTMLVideoElement>(null);
  const url = useObjectUrl(opened?.video);
  const frameRate = videos[0]?.result.frameRate ?? 1;
  const shown = useShownFrame(player, url, frameRate);
  const [revealed, setRevealed] = useState(false);
  // The user has seen the last one.
  const reason = videos.slice(0, -1).map(safetyReason).find(Boolean) ?? null;

  useEffect(() => {
    run(async (signal) => {
      const openedVideo = await openVideo(videos, signal);
      if (signal.aborted) return;
      setOpened(openedVideo);
      setRange({ from: 0, to: openedVideo.frames });
    });
  }, [videos, run]);

  useEffect(() => {
    // It plays what is kept, again and again.
    const video = player.current;
    if (!opened || !video || video.paused) return;
    if (shown < from || shown >= to) video.currentTime = frameTime(from, frameRate);
  }, [opened, shown, from, to, frameRate]);

  if (!opened) {
    if (task.problem) return <Problem error={task.problem} />;
    return <p>{t('result.opening')}</p>;
  }
  const { parts, frames, reasonFor } = opened;
  const isWhole = to - from === frames;
  const show = (frame: number) => {
    const video = player.current;
    if (!video) return;
    video.pause();
    video.currentTime = frameTime(frame, frameRate);
  };
  const save = () =>
    run(async (signal, onShare) => {
      const onFrame = (done: number) => onShare(done / (to - from));
      const { video, used } = isWhole ? opened : await cutParts(parts, range, { signal, onFrame });
      const copied = !reasonFor(from, to);
      const kept = await keepVideo(getRunner().store, video, { used, copied });
      onClose();
      onKept(kept);
    });
  const { busy } = task;
  return (
    <>
      <div className="screen" data-size={videos[0]?.result.size}>
        {url && (
          <Veil
            what="video"
            reason={reason}
            revealed={revealed}
            onToggle={() => setRevealed((before) => !before)}
          >
            <video ref={player} src={url} controls loop muted playsInline />
          </Veil>
        )}
      </div>
      <FrameRange
        label={t('result.start')}
        frame={from}
        frames={frames}
        frameRate={frameRate}
        busy={busy}
        onChange={(first) => {
          setRange(withStart(range, first));
          show(Math.min(first, to - 1));
        }}
      />
      <FrameRange
        label={t('result.end')}
        frame={to - 1}
        frames={frames}
        frameRate={frameRate}
        busy={busy}
        onChange={(last) => {
          setRange(withEnd(range, last, frames));
          show(Math.max(last, from));
        }}
      />
      <p className="field-hint">
        {t('result.trimHint', {
          kept: to - from,
          frames,
          seconds: ((to - from) / frameRate).toFixed(2),
        })}{' '}
        {t(`result.trimmed.${reasonFor(from, to) ?? 'copied'}`)}
      </p>
      <TaskStatus task={task} name={t('result.writing')} />
      <div className="actions">
        <Button
          className="primary"
          // Nothing is left out of it, and nothing joined.
          disabled={busy || (isWhole && videos.length === 1)}
          onClick={save}
        >
          {t('result.keep')}
        </Button>
        <Button onClick={onClose}>{busy ? t('result.cancel') : t('result.close')}</Button>
      </div>
    </>
  );
}

/** Opens the files, and joins them where there are several. */
async function openVideo(videos: readonly Completed[], signal: AbortSignal) {
  const parts = await openParts(videos);
  const { encodingReason, joinedFrames, piecesOf, readCutPoints } = await import(
    '../../../../lib/video/cut'
  );
  const frames = joinedFrames(parts);
  const pointed = await Promise.all(
    parts.map(async (part) => ({ frames: part.frames, points: await readCutPoints(part.file) })),
  );
  const [only] = parts;
  const reasonFor = (from: number, to: number) => {
    // The whole video is the file as it is.
    if (parts.length === 1 && to - from === frames) return null;
    const pieces = piecesOf(pointed, from, to);
    return encodingReason(pieces.map(({ part, ...piece }) => ({ ...piece, points: part.points })));
  };
  if (only && parts.length === 1) {
    const used = [{ row: only.row, from: 0, to: frames }];
    return { parts, frames, reasonFor, video: only.file, used };
  }
  const { video, used } = await cutParts(parts, { from: 0, to: frames }, { signal });
  return { parts, frames, reasonFor, video, used };
}

function safetyReason({ result }: Completed): string | null {
  return blurReason(result.safety);
}

function FrameRange(props: {
  label: string;
  frame: number;
  frames: number;
  frameRate: number;
  busy: boolean;
  onChange: (frame: number) => void;
}) {
  const { label, frame, frames, frameRate, busy, onChange } = props;
  const id = useId();
  const text = t('result.frameOnly', {
    frame: frame + 1,
    seconds: (frame / frameRate).toFixed(2),
  });
  return (
    <div className="frame-range stack gap-12 text-l">
      <label className="strong" htmlFor={id}>
        {label}
      </label>
      <input
        id={id}
        type="range"
        min={0}
        max={frames - 1}
        value={frame}
        disabled={busy}
        aria-valuetext={text}
        onChange={(event) => onChange(event.target.valueAsNumber)}
      />
      <span className="numbers">{text}</span>
    </div>
  );
}
