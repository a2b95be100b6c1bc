import { useRef, useState } from 'react';
import type { Completed } from '../../../lib/contract';
import { Modal } from '../../models/modal';
import { useObjectUrl, useReducedMotion, useWindowEvent } from '../../shared/browser';
import { Button } from '../../shared/button';
import { CloseIcon } from '../../shared/icons';
import { Problem } from '../../shared/messages';
import { blurReason } from '../../shared/safety-text';
import { Veil } from '../../shared/veil';
import { t } from '../../texts';
import '../../texts/en/gallery';
import { useVideo } from '../result/use-video';

/** Least distance of a swipe, in CSS pixels. */
const swipeDistance = 48;
/** Height of the player's own controls, whose slider is no swipe. */
const controlsHeight = 72;

/** The shown videos one by one, as large as the window. Arrow keys and swipes lead to the next one. */
export function Viewer(props: {
  videos: readonly Completed[];
  id: string;
  onMove: (id: string) => void;
  onClose: () => void;
  /** Shows the video with all that belongs to it on the stage. */
  onShow: (id: string) => void;
}) {
  const { videos, id, onMove, onClose, onShow } = props;
  const index = videos.findIndex((video) => video.id === id);
  const video = videos[index];
  const step = (by: 1 | -1) => {
    const next = videos[index + by];
    if (next) onMove(next.id);
  };
  useWindowEvent(
    'keydown',
    (event) => {
      if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
      // The player would move in time.
      event.preventDefault();
      step(event.key === 'ArrowRight' ? 1 : -1);
    },
    true,
  );
  const start = useRef<Touch>(undefined);
  useWindowEvent('touchstart', ({ touches, target }) => {
    const [touch] = touches;
    const isControl =
      touch &&
      target instanceof HTMLVideoElement &&
      touch.clientY > target.getBoundingClientRect().bottom - controlsHeight;
    start.current = touches.length === 1 && !isControl ? touch : undefined;
  });
  useWindowEvent('touchend', ({ changedTouches: [end] }) => {
    if (!start.current || !end) return;
    const { clientX, clientY } = start.current;
    const [x, y] = [end.clientX - clientX, end.clientY - clientY];
    if (Math.abs(x) > swipeDistance && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1);
  });
  if (!video) return null;
  return (
    <Modal
      title={
        <span aria-live="polite">
          {t('gallery.place', { place: index + 1, count: videos.length })}
        </span>
      }
      className="viewer"
      close={null}
      onClose={onClose}
    >
      <div className="viewer-bar row gap-12">
        <Button className="small" onClick={() => onShow(id)}>
          {t('gallery.details')}
        </Button>
        <Button
          className="icon"
          aria-label={t('shared.close')}
          title={t('shared.close')}
          onClick={onClose}
        >
          <CloseIcon />
        </Button>
      </div>
      <ViewerVideo key={id} prediction={video} />
      <div className="viewer-bar viewer-foot row gap-12">
        {/* A disabled button would lose the focus. */}
        <Button
          className="icon"
          aria-label={t('gallery.previous')}
          aria-disabled={index === 0}
          aria-keyshortcuts="ArrowLeft"
          onClick={() => step(-1)}
        >
          ‹
        </Button>
        <p className="clamp flex-1">{video.parameters.prompt}</p>
        <Button
          className="icon"
          aria-label={t('gallery.next')}
          aria-disabled={index === videos.length - 1}
          aria-keyshortcuts="ArrowRight"
          onClick={() => step(1)}
        >
          ›
        </Button>
      </div>
    </Modal>
  );
}

function ViewerVideo({ prediction }: { prediction: Completed }) {
  const { parameters, result } = prediction;
  const video = useVideo(result.videoFile);
  const url = useObjectUrl(video.status === 'ready' ? video.file : null);
  const still = useReducedMotion();
  const reason = blurReason(result.safety);
  const [revealed, setRevealed] = useState(false);
  const blurred = reason !== null && !revealed;
  return (
    <div className="viewer-screen stack gap-0 centered">
      {url && (
        <Veil
          what="video"
          reason={reason}
          revealed={revealed}
          onToggle={() => setRevealed(blurred)}
        >
          <video
            src={url}
            controls={!blurred}
            loop={!still}
            autoPlay={!still && !blurred}
            muted
            playsInline
            aria-label={parameters.prompt}
          />
        </Veil>
      )}
      {video.status === 'missing' && <Problem error={video.error} />}
    </div>
  );
}
