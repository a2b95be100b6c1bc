import { type ChangeEvent, useRef } from 'react';
import { useObjectUrl } from '../shared/browser';
import { describedBy, FieldNotes } from '../shared/fields';
import { ImageIcon, Picture } from '../shared/icons';
import type { ChosenImage } from './form-state';

/** The start image. It can also be dropped or pasted anywhere on the page. */
export function ImageField(props: {
  image: ChosenImage | null;
  error: string | undefined;
  onFiles: (files: readonly File[]) => void;
  onRemove: () => void;
}) {
  const { image, error, onFiles, onRemove } = props;
  const url = useObjectUrl(image?.file);
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(event.target.files ?? [])]);
    event.target.value = ''; // Without this, selecting the same file again fires no event.
  };
  return (
    <div className="field">
      <label htmlFor="image">Image</label>
      <div className={image ? 'image-slot filled' : 'image-slot'}>
        <input
          ref={input}
          id="image"
          type="file"
          accept="image/jpeg,image/png,image/webp,image/avif,image/gif,video/mp4"
          {...describedBy('image', error)}
          onChange={choose}
        />
        {image && url ? (
          <>
            <Picture src={url} alt={`Start image: ${image.name}`} />
            <div className="image-bar">
              <span className="file-name">{image.name}</span>
              <button type="button" onClick={() => input.current?.click()}>
                Replace
              </button>
              <button type="button" onClick={onRemove}>
                Remove
              </button>
            </div>
          </>
        ) : (
          <span className="image-call" aria-hidden="true">
            <ImageIcon />
            <span>
              Drop, paste or <u>choose</u> an image
            </span>
          </span>
        )}
      </div>
      <FieldNotes id="image" error={error} />
    </div>
  );
}
