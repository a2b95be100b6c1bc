import { gaussianNoise } from '../../pipeline/noise';
import { coverCrop } from '../../video/cover-crop';
import { FrameScaler } from '../../video/frame-scaler';
import { runCases } from './cases';

const native = { width: 1280, height: 704 };

/** The start image of a clip, from a photo. */
export function benchImage(): Promise<void> {
  const photo = { width: 4000, height: 3000, data: new Uint8ClampedArray(4000 * 3000 * 4) };
  const run = () => coverCrop(photo, native.width, native.height);
  return runCases([{ name: 'photo 12 MP → 1280×704', unit: 'photos', amount: 1, run }]);
}

/** One decoded frame on its way to the encoder. */
export function benchScaler(): Promise<void> {
  const scaler = new FrameScaler(native, { width: 1280, height: 720 });
  const frame = gaussianNoise({ seed: 2, stream: 0, count: 3 * native.width * native.height });
  const run = () => scaler.scale(frame);
  return runCases([{ name: 'frame 1280×704 → 1280×720', unit: 'frames', amount: 1, run }]);
}
