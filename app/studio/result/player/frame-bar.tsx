import { type RefObject, useRef, useState } from 'react';
import { type KinoraError, toKinoraError } from '../../../../lib/contract';
import { downloadFile, useWindowEvent } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { isTyping } from '../../shortcuts';
import { frameTime, useShownFrame } from './use-shown-frame';

/** Steps through the frames of a video and saves the shown one. The keys are comma and full stop. */
export function FrameBar(props: {
  player: RefObject<HTMLVideoElement | null>;
  /** Null while it is opened. */
  file: File | null;
  url: string | null;
  frames: number;
  /** Frames per second. */
  frameRate: number;
  /** File name of the video, with its ending. */
  name: string;
  onError: (error: KinoraError) => void;
}) {
  const { player, file, url, frames, frameRate, name, onError } = props;
  const frame = useShownFrame(player, url, frameRate);
  /** The frame that the last step has asked for. */
  const target = useRef(0);
  const [saving, setSaving] = useState(false);

  /** The frame where the player is: that of a step counts before it is shown, so that steps add up. */
  const current = () => {
    const time = player.current?.currentTime ?? 0;
    const isTarget = Math.abs(time - frameTime(target.current, frameRate)) < 0.1 / frameRate;
    return player.current?.paused && isTarget ? target.current : frame;
  };
  const step = (by: 1 | -1) => {
    const video = player.current;
    if (!video) return;
    const to = Math.min(frames - 1, Math.max(0, current() + by));
    target.current = to;
    video.pause();
    video.currentTime = frameTime(to, frameRate);
  };
  useWindowEvent('keydown', (event) => {
    const modified = event.ctrlKey || event.metaKey || event.altKey;
    const busy = isTyping(event.target) || document.querySelector('dialog[open]') !== null;
    if (modified || busy || (event.key !== ',' && event.key !== '.')) return;
    event.preventDefault();
    step(event.key === '.' ? 1 : -1);
  });

  async function save(): Promise<void> {
    if (!file) return;
    player.current?.pause();
    setSaving(true);
    try {
      // The MP4 reader is large and rarely used, so it is loaded only here.
      const { readFrameImage } = await import('../../../../lib/video/frames');
      const shown = current();
      downloadFile(await readFrameImage(file, shown), frameName(name, shown));
    } catch (thrown) {
      onError(toKinoraError(thrown));
    } finally {
      setSaving(false);
    }
  }

  return (
    <fieldset className="frame-bar row wrap min-0 bare">
      <legend className="visually-hidden">{t('result.frames')}</legend>
      <Button
        className="small"
        aria-label={t('result.frameBefore')}
        title={t('result.frameBeforeKey')}
        aria-keyshortcuts=","
        onClick={() => step(-1)}
      >
        ‹
      </Button>
      <span className="frame-count text-m numbers">
        {t('result.frameAt', {
          frame: frame + 1,
          frames,
          seconds: (frame / frameRate).toFixed(2),
        })}
      </span>
      <Button
        className="small"
        aria-label={t('result.nextFrame')}
        title={t('result.nextFrameKey')}
        aria-keyshortcuts="."
        onClick={() => step(1)}
      >
        ›
      </Button>
      <Button className="small" disabled={saving} onClick={() => void save()}>
        {t('result.saveFrame')}
      </Button>
    </fieldset>
  );
}

/** `kinora-7-ab12cd34-frame-58.png`; frames count from 1, as on the page. */
function frameName(video: string, frame: number): string {
  return `${video.replace(/\.mp4$/, '')}-frame-${frame + 1}.png`;
}
