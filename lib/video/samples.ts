/** Largest accepted index (`moov`), in bytes: that of ten seconds has about 10 kB. */
const maxIndexBytes = 1_000_000;
/** Most boxes at the top level and in each box of the index: encoders write fewer than ten. */
const maxBoxes = 16;
/** Sample entries of H.264, parameter sets outside or inside of the samples (ISO/IEC 14496-15, 5.4). */
const allowedEntries = ['avc1', 'avc3'];

/** A range of bytes; `end` is the byte after the last one. */
interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** One box: its type and the range of its content. */
interface Box extends ByteRange {
  readonly type: string;
}

/**
 * Follows the index of an MP4 to every sample (ISO/IEC 14496-12, 8.7): parsing only headers accepts a file
 * whose samples are missing.
 *
 * The uploader controls the index, so each table's length is checked before it is read.
 *
 * @param file the whole file
 * @param maxSamples more are refused
 * @returns the number of samples of the one track
 * @throws Error with one sentence: no MP4, fragments, tags, not exactly one H.264 video track, or a sample that
 * lies outside the file's media data
 */
export async function followSamples(file: Blob, maxSamples: number): Promise<number> {
  const outer = await outerBoxes(file);
  const indexes = outer.filter(({ type }) => type === 'moov');
  const [index] = indexes;
  if (!index || indexes.length > 1) throw new Error('it has no single index');
  if (outer.some(({ type }) => type === 'moof')) throw new Error('it is in fragments');
  if (index.end - index.start > maxIndexBytes) throw new Error('its index is too large');
  const media = outer.filter(({ type }) => type === 'mdat');

  const view = new DataView(await file.slice(index.start, index.end).arrayBuffer());
  const inner = boxesIn(view, { start: 0, end: view.byteLength });
  if (inner.some(({ type }) => type === 'mvex')) throw new Error('it is in fragments');
  // A link sends the file as it is stored.
  if (inner.some(({ type }) => type === 'udta' || type === 'meta')) throw new Error('it has tags');
  const tracks = inner.filter(({ type }) => type === 'trak');
  const [track] = tracks;
  if (!track || tracks.length > 1) throw new Error(`it has ${tracks.length} tracks instead of one`);

  const handler = descend(view, track, 'mdia', 'hdlr');
  if (letters(view, handler.start + 8) !== 'vide') throw new Error('its track is no video');
  const table = descend(view, track, 'mdia', 'minf', 'stbl');
  checkSampleEntry(view, descend(view, table, 'stsd'));
  const sizes = sampleSizes(view, descend(view, table, 'stsz'), maxSamples);
  // A chunk has at least one sample, and a run at least one chunk.
  const offsets = chunkOffsets(view, table, sizes.length);
  checkPlaces(sizes, offsets, samplesPerChunk(view, table, offsets.length), media);
  return sizes.length;
}

async function outerBoxes(file: Blob): Promise<Box[]> {
  const boxes: Box[] = [];
  for (let at = 0; at < file.size; ) {
    const view = new DataView(await file.slice(at, at + 16).arrayBuffer());
    const box = readBox(view, 0, at, file.size);
    boxes.push(box);
    at = box.end;
    if (boxes.length > maxBoxes) throw new Error('it has too many parts');
  }
  return boxes;
}

/** The box at `at` in the view, which lies at `offset` of a file or box that ends at `limit`. */
function readBox(view: DataView, at: number, offset: number, limit: number): Box {
  if (view.byteLength < at + 8) throw new Error('it ends within a box');
  let size = view.getUint32(at);
  let header = 8;
  if (size === 1) {
    if (view.byteLength < at + 16) throw new Error('it ends within a box');
    size = Number(view.getBigUint64(at + 8));
    header = 16;
  } else if (size === 0) {
    size = limit - offset;
  }
  if (size < header || offset + size > limit) throw new Error('it ends too early');
  return { type: letters(view, at + 4), start: offset + header, end: offset + size };
}

/** The boxes in the content of another one. @throws Error with one sentence */
function boxesIn(view: DataView, parent: ByteRange): Box[] {
  const boxes: Box[] = [];
  for (let at = parent.start; at < parent.end; ) {
    const box = readBox(view, at, at, parent.end);
    boxes.push(box);
    at = box.end;
    if (boxes.length > maxBoxes) throw new Error('its index has too many parts');
  }
  return boxes;
}

function descend(view: DataView, from: Box, ...path: readonly string[]): Box {
  let box = from;
  for (const type of path) {
    const boxes = boxesIn(view, box).filter((inner) => inner.type === type);
    const [one] = boxes;
    if (!one || boxes.length > 1) throw new Error(`its index has no single "${type}"`);
    box = one;
  }
  return box;
}

function checkSampleEntry(view: DataView, box: Box): void {
  if (box.end - box.start < 16 || view.getUint32(box.start + 4) !== 1) {
    throw new Error('it has more than one kind of sample');
  }
  const codec = letters(view, box.start + 12);
  if (!allowedEntries.includes(codec)) throw new Error(`its codec is "${codec}" and not H.264`);
}

/** Rows of a table box: a version, a count, then numbers of 4 or 8 bytes. */
function rows(view: DataView, box: Box, head: number, rowBytes: number, most: number): number {
  if (box.end - box.start < head) throw new Error('its index is damaged');
  const count = view.getUint32(box.start + head - 4);
  if (count * rowBytes > box.end - box.start - head) throw new Error('its index is damaged');
  if (count > most) {
    throw new Error(`its index lists ${count} frames, more than were asked for`);
  }
  return count;
}

function sampleSizes(view: DataView, box: Box, most: number): number[] {
  if (box.end - box.start < 12) throw new Error('its index is damaged');
  const fixed = view.getUint32(box.start + 4);
  // Frames of one fixed size are no video, and nothing would bound their number.
  if (fixed !== 0) throw new Error('all its samples have one size');
  const count = rows(view, box, 12, 4, most);
  return Array.from({ length: count }, (_, n) => view.getUint32(box.start + 12 + 4 * n));
}

function chunkOffsets(view: DataView, table: Box, most: number): number[] {
  const long = boxesIn(view, table).some(({ type }) => type === 'co64');
  const box = descend(view, table, long ? 'co64' : 'stco');
  const count = rows(view, box, 8, long ? 8 : 4, most);
  return Array.from({ length: count }, (_, n) =>
    long ? Number(view.getBigUint64(box.start + 8 + 8 * n)) : view.getUint32(box.start + 8 + 4 * n),
  );
}

/** Runs of chunks that hold equally many samples, as in `stsc`: first chunk (from 1) and samples. */
function samplesPerChunk(
  view: DataView,
  table: Box,
  most: number,
): { first: number; samples: number }[] {
  const box = descend(view, table, 'stsc');
  return Array.from({ length: rows(view, box, 8, 12, most) }, (_, n) => ({
    first: view.getUint32(box.start + 8 + 12 * n),
    samples: view.getUint32(box.start + 12 + 12 * n),
  }));
}

function checkPlaces(
  sizes: readonly number[],
  offsets: readonly number[],
  runs: readonly { first: number; samples: number }[],
  media: readonly ByteRange[],
): void {
  if (sizes.length === 0) throw new Error('it has no samples');
  let sample = 0;
  let run = 0;
  for (const [chunk, start] of offsets.entries()) {
    while ((runs[run + 1]?.first ?? Number.POSITIVE_INFINITY) <= chunk + 1) run += 1;
    const count = runs[run]?.samples ?? 0;
    const end = sizes.slice(sample, sample + count).reduce((at, size) => at + size, start);
    if (sample + count > sizes.length)
      throw new Error('its index lists samples that are not there');
    if (!media.some((box) => start >= box.start && end <= box.end)) {
      throw new Error('a sample lies outside of its media data');
    }
    sample += count;
  }
  if (sample !== sizes.length) throw new Error('its index does not place every sample');
  if (sizes.some((size) => size === 0)) throw new Error('it has an empty sample');
}

function letters(view: DataView, at: number): string {
  if (at + 4 > view.byteLength) throw new Error('it ends within a box');
  return String.fromCharCode(...new Uint8Array(view.buffer, view.byteOffset + at, 4));
}
