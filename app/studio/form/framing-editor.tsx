import { Button } from '../../shared/button';
import { t } from '../../texts';
import '../../texts/en/framing';
import { type PointerEvent, useEffect, useEffectEvent, useId, useRef } from 'react';
import { backing, centred, type Framing, maxZoom, placeImage } from '../../../lib/contract';
import { useAnswer } from '../../shared/browser';
import { FramedParts } from './framed-picture';
import {
  type FramingSizes,
  filling,
  fitted,
  framingOfKey,
  hasBars,
  moved,
  pixelWarning,
  shownImage,
  zoomed,
} from './framing-state';

const defaultColour = '#000000';

/**
 * An image under the frame of the video. The image is dragged, or moved by arrow keys, and zoomed by a
 * slider, + and −, or a wheel with Ctrl; what lies inside of the frame is what the model is given.
 */
export function FramingEditor(props: {
  url: string;
  alt: string;
  sizes: FramingSizes;
  framing?: Framing | undefined;
  onChange: (framing: Framing) => void;
}) {
  const { url, alt, sizes, framing = centred, onChange } = props;
  const { image, frame, video } = sizes;
  const placement = placeImage(image, framing, frame, video);
  const bars = hasBars(shownImage(placement, sizes));
  const roomBeside = hasRoom(placement.x.resized, frame.width);
  const roomAbove = hasRoom(placement.y.resized, frame.height);
  const view = useRef<HTMLDivElement>(null);
  const frameBox = useRef<HTMLDivElement>(null);
  const drag = useRef<{ x: number; y: number; framing: Framing } | null>(null);
  const warning = pixelWarning(image, framing);
  const colour = framing.background === 'blur' ? null : framing.background;
  const transparent = useAnswer(() => isTransparent(url), [url]);
  const id = useId();

  const onWheel = useEffectEvent((event: WheelEvent) => {
    // As maps do: the wheel alone scrolls the page.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    onChange(zoomed(framing, sizes, framing.zoom - event.deltaY / 400));
  });
  useEffect(() => {
    const element = view.current;
    // React's own wheel events cannot be prevented.
    const listener = (event: WheelEvent) => onWheel(event);
    element?.addEventListener('wheel', listener, { passive: false });
    return () => element?.removeEventListener('wheel', listener);
  }, []);

  const move = (event: PointerEvent) => {
    const box = frameBox.current;
    if (!drag.current || !box) return;
    const dx = (event.clientX - drag.current.x) / box.clientWidth;
    const dy = (event.clientY - drag.current.y) / box.clientHeight;
    onChange(moved(drag.current.framing, sizes, dx, dy));
  };
  return (
    <div className="framing">
      <div
        ref={view}
        className="framing-view stack gap-0 clip centered"
        // A finger scrolls the page where the image cannot be moved.
        style={{ touchAction: !roomAbove ? 'pan-y' : roomBeside ? 'none' : 'pan-x' }}
        data-portrait={video.height > video.width || undefined}
        role="application"
        aria-label={t('framing.frame')}
        aria-describedby={`${id}-keys`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys
        tabIndex={0}
        onKeyDown={(event) => {
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          const next = framingOfKey(event, framing, sizes);
          if (!next) return;
          event.preventDefault();
          onChange(next);
        }}
        onPointerDown={(event) => {
          if (event.button !== 0) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          drag.current = { x: event.clientX, y: event.clientY, framing };
        }}
        onPointerMove={move}
        onPointerUp={() => {
          drag.current = null;
        }}
        onPointerCancel={() => {
          drag.current = null;
        }}
      >
        <div
          ref={frameBox}
          className="framing-frame relative"
          style={{ aspectRatio: `${video.width} / ${video.height}` }}
        >
          <FramedParts url={url} alt={alt} sizes={sizes} framing={framing} />
          <div className="framing-outline framing-cover" />
        </div>
      </div>
      <p id={`${id}-keys`} className="visually-hidden">
        {t('framing.framingKeys')}
      </p>
      <div className="framing-controls row wrap ruled on-surface text-m">
        <label className="row flex-1">
          <span>{t('framing.zoom')}</span>
          <input
            type="range"
            min={0}
            max={maxZoom}
            step={0.05}
            value={framing.zoom}
            aria-valuetext={`${Math.round(100 * framing.zoom)} %`}
            onChange={(event) => onChange(zoomed(framing, sizes, Number(event.target.value)))}
          />
        </label>
        <Button className="small" onClick={() => onChange(fitted(framing))}>
          {t('framing.fit')}
        </Button>
        <Button className="small" onClick={() => onChange(filling(framing))}>
          {t('framing.fill')}
        </Button>
      </div>
      {transparent && !bars && (
        <label className="framing-controls row wrap ruled on-surface text-m">
          {t('framing.behindImage')}
          <input
            type="color"
            value={backing(framing)}
            onChange={(event) => onChange({ ...framing, background: event.target.value })}
          />
        </label>
      )}
      {bars && (
        <fieldset className="framing-controls row wrap ruled on-surface text-m">
          <legend className="visually-hidden">{t('framing.background')}</legend>
          <label className="row">
            <input
              type="radio"
              name={`${id}-background`}
              checked={colour === null}
              onChange={() => onChange({ ...framing, background: 'blur' })}
            />
            {t('framing.blurredBackground')}
          </label>
          <label className="row">
            <input
              type="radio"
              name={`${id}-background`}
              checked={colour !== null}
              onChange={() => onChange({ ...framing, background: defaultColour })}
            />
            {t('framing.colour')}
          </label>
          {colour !== null && (
            <input
              type="color"
              aria-label={t('framing.backgroundColour')}
              value={colour}
              onChange={(event) => onChange({ ...framing, background: event.target.value })}
            />
          )}
        </fieldset>
      )}
      {warning && <p className="framing-controls ruled on-surface text-m">{warning}</p>}
    </div>
  );
}

/** Whether an image has transparent parts. */
async function isTransparent(url: string): Promise<boolean> {
  const image = new Image();
  image.src = url;
  await image.decode();
  const side = 64;
  const context = new OffscreenCanvas(side, side).getContext('2d');
  context?.drawImage(image, 0, 0, side, side);
  const pixels = context?.getImageData(0, 0, side, side).data ?? [];
  return pixels.some((value, index) => index % 4 === 3 && value < 250);
}

/** Whether there is enough room to move the image that one would drag it. */
function hasRoom(resized: number, length: number): boolean {
  return Math.abs(resized - length) > 0.04 * length;
}
