import type { PixelSize } from '../../../lib/contract';
import { useAnswer } from '../../shared/browser';
import type { ChosenImage } from './form-state';

/** The size of an image in pixels, upright; null until it is known, and for no image. */
export function useImageSize(image: Pick<ChosenImage, 'file' | 'pixels'> | null): PixelSize | null {
  const { file, pixels } = image ?? {};
  // An image of the form was read before: it does not fail.
  const measured = useAnswer(async () => {
    if (!file || pixels) return null;
    const bitmap = await createImageBitmap(file);
    const { width, height } = bitmap;
    bitmap.close();
    return { width, height };
  }, [file, pixels]);
  return pixels ?? measured ?? null;
}
