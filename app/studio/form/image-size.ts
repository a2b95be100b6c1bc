import { useEffect, useState } from 'react';
import type { PixelSize } from '../../../lib/contract';
import type { ChosenImage } from './form-state';

/** The size of an image in pixels, upright; null until it is known, and for no image. */
export function useImageSize(image: Pick<ChosenImage, 'file' | 'pixels'> | null): PixelSize | null {
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
