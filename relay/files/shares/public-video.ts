import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { arrayBuffer } from 'node:stream/consumers';
import type { SharedRequest } from '../../../lib/contract/v3';
import { publicLayout } from '../../../lib/video/public-copy';
import type { Content } from '../serving';

/** Bytes that are read at once: the boxes before the frames, in a file whose index is in front. */
const firstBytes = 65_536;

/**
 * The video of a link, with no more in its tags than the link shows. Its frames are read from the stored file while
 * they are sent; only its index is made anew.
 *
 * @returns `tag` changes with the bytes: the frames of a stored file never change
 */
export async function publicVideo(
  original: Content,
  request: SharedRequest,
): Promise<{ content: Content; tag: string }> {
  const { bytes: size, read } = original;
  const start = await arrayBuffer(await read({ first: 0, last: Math.min(size, firstBytes) - 1 }));
  const slice = (from: number, to: number) => ({
    arrayBuffer: async () => {
      const end = Math.min(to, size);
      if (end <= start.byteLength) return start.slice(from, end);
      return await arrayBuffer(await read({ first: from, last: end - 1 }));
    },
  });
  const { head, body } = await publicLayout({ size, slice }, request);
  const bytes = body.reduce((sum, { start: from, end }) => sum + end - from, head.length);

  async function* pieces(first: number, last: number): AsyncGenerator<Uint8Array> {
    if (first < head.length) yield head.subarray(first, last + 1);
    let at = head.length;
    for (const { start: from, end } of body) {
      const begin = Math.max(from, from + first - at);
      const stop = Math.min(end, from + last + 1 - at);
      if (begin < stop) yield* await read({ first: begin, last: stop - 1 });
      at += end - from;
    }
  }
  const content: Content = {
    bytes,
    read: async ({ first, last } = { first: 0, last: bytes - 1 }) =>
      Readable.from(pieces(first, last), { objectMode: false }),
  };
  return { content, tag: createHash('sha256').update(head).digest('hex') };
}
