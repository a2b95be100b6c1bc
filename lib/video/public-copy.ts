import { KinoraError } from '../contract/errors';
import type { Framing } from '../contract/framing';
import type { SharedRequest } from '../contract/v3/share';
import { joinBytes } from './bytes';
import { type ByteRange, type ByteSource, boxesIn, followSamples } from './samples';

/** A copy of a video for others: new bytes, and after them ranges of the original. */
export interface PublicLayout {
  readonly head: Uint8Array<ArrayBuffer>;
  readonly body: readonly ByteRange[];
}

/** The images that a copy shows. */
export interface SharedImage {
  /** A JPEG in base64. */
  readonly start_image: string;
  readonly framing?: Framing | undefined;
  readonly last_image?: string | undefined;
  readonly last_framing?: Framing | undefined;
}

/**
 * Lays out a copy of an MP4 that has nothing but what a player needs, and in its tags the request as far as it
 * is shown. The index is made anew of the boxes below, with the places that the samples have in the copy; media
 * data that belongs to no sample is left out. The frames are the same bytes, and the same request gives the same
 * copy.
 *
 * @throws Error with one sentence for a file that is not one H.264 track with its whole index
 */
export async function publicLayout(
  file: ByteSource,
  request: SharedRequest,
  image: SharedImage | null = null,
): Promise<PublicLayout> {
  const { index, chunks } = await followSamples(file, Number.POSITIVE_INFINITY);
  const places: number[] = [];
  let mediaBytes = 0;
  for (const { start, end } of chunks) {
    places.push(mediaBytes);
    mediaBytes += end - start;
  }
  const tags = userData(request, image);
  const indexAt = (first: number): Uint8Array[] => {
    const offsets = places.map((place) => first + place);
    const table = box('stco', ...u32(0, offsets.length, ...offsets));
    const content = keptBoxes(index, { start: 0, end: index.byteLength }, table);
    return box('moov', ...content, ...tags);
  };
  // The index has the same length with any offsets.
  const before = joinBytes(fileType).length + joinBytes(indexAt(0)).length + 8;
  if (before + mediaBytes > 0xffff_ffff) throw new Error('it is too large');
  const head = joinBytes([...fileType, ...indexAt(before), ...u32(mediaBytes + 8), ascii('mdat')]);
  const body: { start: number; end: number }[] = [];
  for (const { start, end } of chunks) {
    const last = body.at(-1);
    if (last?.end === start) last.end = end;
    else body.push({ start, end });
  }
  return { head, body };
}

/** The copy of {@link publicLayout} as a file. @throws KinoraError `VIDEO_UNREADABLE` */
export async function publicCopy(
  file: Blob,
  request: SharedRequest,
  image: SharedImage | null = null,
): Promise<Blob> {
  const { head, body } = await publicLayout(file, request, image).catch((cause: unknown) => {
    throw new KinoraError('VIDEO_UNREADABLE', undefined, { cause });
  });
  const parts = body.map(({ start, end }) => file.slice(start, end));
  return new Blob([head, ...parts], { type: 'video/mp4' });
}

/** Boxes that hold boxes, and the bytes before these (ISO/IEC 14496-12; 14496-15 for `avc1`). */
const containers: Readonly<Record<string, number>> = {
  trak: 0,
  edts: 0,
  mdia: 0,
  minf: 0,
  dinf: 0,
  stbl: 0,
  stsd: 8,
  avc1: 78,
  avc3: 78,
};
/** Boxes that are copied. No other one is needed to play, and any may hold text. */
const copied: readonly string[] = [
  ...['mvhd', 'tkhd', 'elst', 'mdhd', 'vmhd', 'stts', 'ctts', 'stss', 'stsz', 'stsc'],
  ...['avcC', 'colr', 'pasp', 'btrt'],
];
/** Where the name of the compressor is in `avc1`. */
const compressorName = { start: 42, end: 74 } as const;

const fileType = box('ftyp', ascii('isom'), ...u32(512), ascii('isomiso2avc1mp41'));
/** The media data is in the file itself. */
const dataReference = box('dref', ...u32(0, 1), ...box('url ', ...u32(1)));

/** @param chunkOffsets takes the place of the box with the chunks' places */
function keptBoxes(
  view: DataView<ArrayBuffer>,
  parent: ByteRange,
  chunkOffsets: Uint8Array[],
): Uint8Array[] {
  return boxesIn(view, parent).flatMap(({ type, start, end }) => {
    const prefix = Object.hasOwn(containers, type) ? containers[type] : undefined;
    if (prefix !== undefined) {
      const fields = new Uint8Array(view.buffer.slice(start, start + prefix));
      if (prefix === 78) fields.fill(0, compressorName.start, compressorName.end);
      const inner = keptBoxes(view, { start: start + prefix, end }, chunkOffsets);
      return box(type, fields, ...inner);
    }
    if (type === 'stco' || type === 'co64') return chunkOffsets;
    if (type === 'hdlr') return handler('vide', '');
    if (type === 'dref') return dataReference;
    if (!copied.includes(type)) return [];
    return box(type, new Uint8Array(view.buffer, start, end - start));
  });
}

/** `udta` with the tags that players show: empty but for the program where nothing is shown. */
function userData(request: SharedRequest, image: SharedImage | null): Uint8Array[] {
  const { prompt, seed, size, duration, num_inference_steps: steps } = request.parameters;
  const shown = image !== null || Object.keys(request.parameters).length > 0;
  const facts = `${request.profile}, seed ${seed}, ${steps} steps, ${size}, ${duration} s`;
  const tags = [
    ...(prompt === undefined ? [] : tag('©nam', prompt)),
    ...(request.profile === undefined ? [] : tag('desc', facts)),
    ...(shown
      ? tag(
          '©cmt',
          JSON.stringify({ app: 'kinora', shared: { ...request, image: false }, ...image }),
        )
      : []),
    ...tag('©too', 'Kinora'),
  ];
  return box(
    'udta',
    ...box('meta', ...u32(0), ...handler('mdir', 'appl'), ...box('ilst', ...tags)),
  );
}

/** One entry of `ilst`: UTF-8 text. */
function tag(name: string, text: string): Uint8Array[] {
  return box(name, ...box('data', ...u32(1, 0), new TextEncoder().encode(text)));
}

function handler(kind: string, maker: string): Uint8Array[] {
  return box(
    'hdlr',
    ...u32(0, 0),
    ascii(kind),
    ascii(maker.padEnd(4, '\0')),
    ...u32(0, 0),
    ascii('\0'),
  );
}

function box(type: string, ...content: readonly Uint8Array[]): Uint8Array[] {
  const size = content.reduce((sum, { length }) => sum + length, 8);
  return [...u32(size), ascii(type), ...content];
}

function u32(...values: readonly number[]): Uint8Array[] {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (const [at, value] of values.entries()) view.setUint32(4 * at, value);
  return [new Uint8Array(view.buffer)];
}

/** One byte for each character, as types and `©` have. */
function ascii(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
