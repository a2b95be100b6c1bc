import { type ChangeEvent, lazy, Suspense, useEffect, useRef, useState } from 'react';
import type { Framing, PixelSize } from '../../../lib/contract/framing';
import { type Size, sizeInPixels } from '../../../lib/contract/parameters';
import { useObjectUrl } from '../../shared/browser';
import { describedBy, FieldNotes } from '../../shared/fields';
import { ImageIcon } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/form';
import type { ChosenImage } from './form-state';

// Without an image there is none.
const FramingEditor = lazy(async () => ({
  default: (await import('./framing-editor')).FramingEditor,
}));

/** The start image. It can also be dropped or pasted anywhere on the page. */
export function ImageField(props: {
  image: ChosenImage | null;
  error: string | undefined;
  /** Of the video. */
  size: Size;
  /** What the model computes for this size; undefined where no model is known yet. */
  frame: PixelSize | undefined;
  onFiles: (files: readonly File[]) => void;
  onFraming: (framing: Framing) => void;
  onRemove: () => void;
}) {
  const { image, error, size, onFiles, onFraming, onRemove } = props;
  const url = useObjectUrl(image?.file);
  const pixels = useImageSize(image);
  const video = sizeInPixels(size);
  const input = useRef<HTMLInputElement>(null);
  const place = <div className="framing-place" data-size={size} />;
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(event.target.files ?? [])]);
    event.target.value = ''; // Without this, selecting the same file again fires no event.
  };
  return (
    <div className="field">
      <label htmlFor="image">{t('form.image')}</label>
      <div className="image-slot" data-filled={image ? true : undefined}>
        <input
          ref={input}
          id="image"
          type="file"
          multiple
          accept="image/jpeg,image/png,image/webp,image/avif,image/gif,image/heic,image/heif,.heic,.heif,video/mp4"
          {...describedBy('image', error)}
          onChange={choose}
        />
        {image ? (
          <>
            <Suspense fallback={place}>
              {pixels && url ? (
                <FramingEditor
                  url={url}
                  alt={t('form.startImage', { name: image.name })}
                  sizes={{ image: pixels, frame: props.frame ?? video, video }}
                  framing={image.framing}
                  onChange={onFraming}
                />
              ) : (
                place
              )}
            </Suspense>
            <div className="image-bar">
              <span className="file-name">{image.name}</span>
              <button type="button" onClick={() => input.current?.click()}>
                {t('form.replace')}
              </button>
              <button type="button" onClick={onRemove}>
                {t('form.remove')}
              </button>
            </div>
          </>
        ) : (
          <span className="image-call" aria-hidden="true">
            <ImageIcon />
            <span>{t.rich('form.dropImage', { u: (text) => <u>{text}</u> })}</span>
          </span>
        )}
      </div>
      <FieldNotes id="image" error={error} />
    </div>
  );
}

/** The size of an image in pixels, upright; null until it is known, and for no image. */
function useImageSize(image: ChosenImage | null): PixelSize | null {
  const { file, pixels } = image ?? {};
  const [measured, setMeasured] = useState<(PixelSize & { readonly file: Blob }) | null>(null);
  useEffect(() => {
    if (!file || pixels) return;
    let current = true;
    // An image of the form was read before: it does not fail.
    void createImageBitmap(file).then((bitmap) => {
      const { width, height } = bitmap;
      bitmap.close();
      if (current) setMeasured({ file, width, height });
    });
    return () => {
      current = false;
    };
  }, [file, pixels]);
  return pixels ?? (measured?.file === file ? measured : null);
}
