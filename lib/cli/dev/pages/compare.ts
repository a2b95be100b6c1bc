import { readFrames } from '../../../video/frames';
import { decodeImage } from '../../../video/image';
import { inspectVideo } from '../../../video/inspect';
import { type Measures, measureVideo } from '../compare/measures';
import { tellReady } from './in-worker';

declare global {
  interface Window {
    /** Measures the video in `#video` with the start image in `#image`. */
    kinoraMeasure?: (loop: boolean) => Promise<Measures>;
  }
}

const [image, video] = ['image', 'video'].map((id) => {
  const input = document.createElement('input');
  input.type = 'file';
  input.id = id;
  document.querySelector('main')?.append(input);
  return input;
});

window.kinoraMeasure = async (loop) => {
  const [still, file] = [image?.files?.[0], video?.files?.[0]];
  if (!still || !file) throw new TypeError('#image and #video need a file');
  const { frames, frameRate } = await inspectVideo(file);
  const all = Array.from({ length: frames }, (_, index) => index);
  async function* pictures(of: Blob) {
    for await (const { pixels } of readFrames(of, all, frameRate)) yield pixels;
  }
  return measureVideo(await decodeImage(still), pictures(file), loop);
};
tellReady();
