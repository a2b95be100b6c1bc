import { base64 } from '../contract';
import type { Preview } from '../predictions/run-state';

/** Most characters of a preview's data URI. */
const longestText = 48_000;
/** Shortest time between two previews, in milliseconds. */
const quietMs = 2000;

/** Turns the engine's preview strips into small pictures, no more of them than anybody needs. */
export class PreviewPictures {
  #latest: Preview | null = null;
  #takenAt = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds, monotonic */
  constructor(readonly now: () => number = () => performance.now()) {}

  /** A newer strip replaces one that was not taken yet. */
  offer(preview: Preview): void {
    this.#latest = preview;
  }

  /** Data URI of the latest strip's middle frame; null where there is nothing new, or it is too soon. */
  async take(): Promise<string | null> {
    const preview = this.#latest;
    const now = this.now();
    if (!preview || now - this.#takenAt < quietMs) return null;
    this.#latest = null;
    this.#takenAt = now;
    return toDataUri(preview);
  }
}

/** @returns null where the browser cannot draw it, or it would be too long */
async function toDataUri({ pixels, width, height, count }: Preview): Promise<string | null> {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  if (!context) return null;
  const frame = width * height * 4;
  const start = Math.floor(count / 2) * frame;
  context.putImageData(new ImageData(pixels.slice(start, start + frame), width, height), 0, 0);
  for (const quality of [0.8, 0.5, 0.2]) {
    // A browser that cannot write WebP writes PNG, which the protocol takes as well.
    const blob = await canvas.convertToBlob({ type: 'image/webp', quality });
    const head = `data:${blob.type};base64,`;
    const text = head + base64(new Uint8Array(await blob.arrayBuffer()));
    if (text.length <= longestText) return text;
  }
  return null;
}
