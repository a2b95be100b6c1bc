import { type ChangeEvent, lazy, Suspense, useRef } from 'react';
import { nativeSizeOf, sizeInPixels } from '../../../lib/contract';
import { useObjectUrl } from '../../shared/browser';
import { Button } from '../../shared/button';
import { describedBy, FieldNotes } from '../../shared/fields';
import { ImageIcon } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import type { ImageName } from './form-state';
import { useImageSize } from './image-size';
import { LastImageField } from './parameter-fields';

const FramingEditor = lazy(async () => ({
  default: (await import('./framing-editor')).FramingEditor,
}));

/** Ids and texts of the fields. */
const fields = {
  image: { id: 'image', label: 'form.image', alt: 'form.startImage', call: 'form.dropImage' },
  lastImage: {
    id: 'last-image',
    label: 'form.lastImage',
    alt: 'form.endImage',
    call: 'form.dropLastImage',
  },
} as const;

/**
 * The start image, which can also be dropped or pasted anywhere on the page; or the end image, which can be dropped or
 * pasted there.
 */
export function ImageField({ name }: { name: ImageName }) {
  const { form, values, errors, model, resolved, change, fileInput } = useFields();
  const { size, profile } = values;
  const [image, error] = [form.files[name], errors[name]];
  const frame = model && nativeSizeOf(model.manifest, model.manifest.profiles[profile], size);
  const { id, label, alt, call } = fields[name];
  // Both have a frame and a zoom: those of the end image are a group of that name.
  const Field = name === 'lastImage' ? 'fieldset' : 'div';
  const url = useObjectUrl(image?.file);
  const pixels = useImageSize(image);
  const video = sizeInPixels(size);
  const input = useRef<HTMLInputElement>(null);
  const place = <div className="framing-place" data-size={size} />;
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    void fileInput.addFiles([...(event.target.files ?? [])], name);
    event.target.value = ''; // Without this, selecting the same file again fires no event.
  };
  return (
    <Field
      className="field"
      id={`${id}-field`}
      {...(name === 'lastImage' && { 'aria-label': t(label) })}
    >
      <label htmlFor={id}>{t(label)}</label>
      <div
        className="image-slot relative clip rounded on-sunken"
        data-filled={image ? true : undefined}
      >
        <input
          ref={input}
          id={id}
          type="file"
          multiple={name === 'image'}
          accept="image/jpeg,image/png,image/webp,image/avif,image/gif,image/bmp,image/heic,image/heif,.heic,.heif,video/mp4"
          {...describedBy(id, error)}
          onChange={choose}
        />
        {image ? (
          <>
            <Suspense fallback={place}>
              {pixels && url ? (
                <FramingEditor
                  url={url}
                  alt={t(alt, { name: image.name })}
                  sizes={{ image: pixels, frame: frame ?? video, video }}
                  framing={image.framing}
                  onChange={(framing) => change({ type: 'imageFramed', framing, name })}
                />
              ) : (
                place
              )}
            </Suspense>
            <div className="image-bar row relative ruled on-surface">
              <span className="file-name flex-1 min-0 clip text-l">{image.name}</span>
              {name === 'lastImage' && (
                <Button
                  className="small"
                  title={t('form.swapHint')}
                  onClick={() => change({ type: 'imagesSwapped' })}
                >
                  {t('form.swap')}
                </Button>
              )}
              <Button className="small" onClick={() => input.current?.click()}>
                {t('form.replace')}
              </Button>
              <Button
                className="small"
                onClick={() => change({ type: 'imageSet', image: null, name })}
              >
                {t('form.remove')}
              </Button>
            </div>
          </>
        ) : (
          <span className="image-call stack gap-8 muted" aria-hidden="true">
            <ImageIcon />
            <span>{t.rich(call, { u: (text) => <u>{text}</u> })}</span>
          </span>
        )}
      </div>
      <FieldNotes id={id} error={error} />
      {image && name === 'lastImage' && (
        <>
          <LastImageField />
          {resolved?.applied.adapter && <p className="field-hint">{t('form.endUntrained')}</p>}
        </>
      )}
    </Field>
  );
}
