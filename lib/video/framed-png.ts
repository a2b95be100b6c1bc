import { backing, centred, type Framing, type PixelSize } from '../contract';
import { frameImage } from './frame-image';
import { FrameScaler } from './frame-scaler';
import { decodeImage, toPng } from './image';

/**
 * An image as the model takes it, as a PNG: sent to the API, which puts images in the centre, it lies in the frame
 * as it was framed.
 *
 * @param frame what the model computes, in pixels
 * @param video size of the delivered video
 * @throws KinoraError as {@link decodeImage} does
 */
export async function framedPng(
  image: Blob,
  framing: Framing | undefined,
  frame: PixelSize,
  video: PixelSize,
): Promise<Blob> {
  const pixels = await decodeImage(image, backing(framing ?? centred));
  const data = new FrameScaler(frame, frame).scale(frameImage(pixels, framing, frame, video));
  return toPng({ width: frame.width, height: frame.height, data });
}
