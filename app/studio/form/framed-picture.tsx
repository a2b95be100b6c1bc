import type { CSSProperties } from 'react';
import {
  backing,
  blurDeviation,
  centred,
  type Framing,
  placeImage,
  type Size,
  sizeInPixels,
} from '../../../lib/contract';
import { useObjectUrl } from '../../shared/browser';
import { Picture } from '../../shared/icons';
import { type FramingSizes, type ShownImage, shownImage } from './framing-state';
import { useImageSize } from './image-size';

/** An image as the video of this size shows it: framed, with what lies beside it. The words for it stand elsewhere. */
export function FramedPicture(props: {
  image: { readonly file: Blob; readonly framing?: Framing | undefined };
  size: Size;
}) {
  const { image, size } = props;
  const url = useObjectUrl(image.file);
  const pixels = useImageSize(image);
  const video = sizeInPixels(size);
  const ratio = { aspectRatio: `${video.width} / ${video.height}` };
  return (
    <div className="framing-frame framed-picture relative clip" style={ratio}>
      {url && pixels && (
        <FramedParts
          url={url}
          alt=""
          sizes={{ image: pixels, frame: video, video }}
          framing={image.framing ?? centred}
        />
      )}
    </div>
  );
}

/** What a frame shows of an image, and behind it. */
export function FramedParts(props: {
  url: string;
  alt: string;
  sizes: FramingSizes;
  framing: Framing;
}) {
  const { url, alt, sizes, framing } = props;
  const shown = shownImage(placeImage(sizes.image, framing, sizes.frame, sizes.video), sizes);
  const colour = framing.background === 'blur' ? null : framing.background;
  return (
    <>
      <div className="framing-cover clip" style={{ background: colour ?? undefined }}>
        {colour === null && <Background url={url} sizes={sizes} />}
      </div>
      <div className="framing-image" style={{ ...inPercent(shown), background: backing(framing) }}>
        <Picture src={url} alt={alt} />
      </div>
    </>
  );
}

/** The image that covers the frame, blurred as the engine blurs it. */
function Background({ url, sizes }: { url: string; sizes: FramingSizes }) {
  const { image, frame, video } = sizes;
  const covering = shownImage(placeImage(image, centred, frame), sizes);
  // `cqi` is a percentage of the width of the frame.
  const deviation = (100 * blurDeviation * Math.max(video.width, video.height)) / video.width;
  return (
    <>
      <div className="framing-image" style={inPercent(covering)}>
        <Picture src={url} alt="" />
      </div>
      {/* Unlike a filter of the image, it does not fade at the edges. */}
      <div className="framing-cover clip" style={{ backdropFilter: `blur(${deviation}cqi)` }} />
    </>
  );
}

function inPercent(shown: ShownImage): CSSProperties {
  const percent = (value: number) => `${value}%`;
  const { left, top, width, height } = shown;
  return { left: percent(left), top: percent(top), width: percent(width), height: percent(height) };
}
