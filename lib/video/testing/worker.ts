/** Everything of lib/video inside a Web Worker, where the application runs it; for tests only. */

import { createVideoWriter, type VideoWriterOptions } from '../encoder';
import { coverCrop } from '../frame-image';
import { I420Scaler } from '../i420-scaler';
import { decodeImage } from '../image';

export interface WorkerTask {
  readonly image: Blob;
  /** Size in which the frames come from the model. */
  readonly source: { readonly width: number; readonly height: number };
  readonly options: VideoWriterOptions;
}

export type WorkerAnswer =
  | { readonly video: Blob; readonly encoder: string }
  | { readonly error: string };

self.onmessage = async ({ data }: MessageEvent<WorkerTask>) => {
  self.postMessage(await makeStill(data).catch((error) => ({ error: String(error) })));
};

/** A video in which every frame is the image. */
async function makeStill({ image, source, options }: WorkerTask): Promise<WorkerAnswer> {
  const { width, height, frames } = options;
  const frame = coverCrop(await decodeImage(image), source.width, source.height);
  const scaler = new I420Scaler(source, { width, height });
  const writer = await createVideoWriter(options);
  for (let i = 0; i < frames; i++) await writer.add(scaler.scale(frame));
  return { video: await writer.finish(), encoder: writer.encoder };
}
