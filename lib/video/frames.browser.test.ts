import {
  BlobSource,
  BufferTarget,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  MP4,
  Mp4OutputFormat,
  Output,
} from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { readFrame } from './frames';
import type { Pixels } from './image';
import { createRgbaWriter } from './testing/i420';

const [width, height] = [160, 96];
type Color = readonly [number, number, number];
const above: Color = [200, 60, 40];
const below: Color = [50, 60, 210];
let video: Blob;

beforeAll(async () => {
  const writer = await createRgbaWriter({ width, height, frameRate: 24, frames: 1 });
  const frame = new Uint8ClampedArray(width * height * 4);
  for (let at = 0; at < frame.length; at += 4) {
    frame.set([...(at < frame.length / 2 ? above : below), 255], at);
  }
  await writer.add(frame);
  video = await writer.finish();
});

/** The same packets in a file that says how its picture is turned. */
async function relabelled(rotation: 0 | 90 | 180): Promise<Blob> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  const decoderConfig = await track?.getDecoderConfig();
  if (!track || !decoderConfig) throw new Error('no track');
  const output = new Output({ format: new Mp4OutputFormat(), target: new BufferTarget() });
  const source = new EncodedVideoPacketSource('avc');
  output.addVideoTrack(source, { rotation });
  await output.start();
  for await (const packet of new EncodedPacketSink(track).packets()) {
    await source.add(packet, { decoderConfig });
  }
  await output.finalize();
  input.dispose();
  return new Blob([output.target.buffer ?? ''], { type: 'video/mp4' });
}

function expectColor(
  { data, width }: Pixels,
  [x, y]: readonly [number, number],
  color: Color,
  // Of what the browser draws: it is off by up to 9.
  tolerance = 10,
) {
  const pixel = [...data.subarray((y * width + x) * 4, (y * width + x) * 4 + 3)];
  const off = Math.max(...pixel.map((value, c) => Math.abs(value - (color[c] ?? 0))));
  expect(off, `${pixel} instead of ${color}`).toBeLessThanOrEqual(tolerance);
}

test('a frame is read as it is', async () => {
  const frame = await readFrame(await relabelled(0));
  expectColor(frame, [80, 20], above, 3);
  expectColor(frame, [80, 76], below, 3);
});

test('a video that is turned is read upright', async () => {
  const over = await readFrame(await relabelled(180));
  expect(over).toMatchObject({ width, height });
  expectColor(over, [80, 20], below);
  expectColor(over, [80, 76], above);
  const side = await readFrame(await relabelled(90));
  expect(side).toMatchObject({ width: height, height: width });
  expectColor(side, [20, 80], below);
  expectColor(side, [76, 80], above);
});

test('colours in full range are read as such', async () => {
  // The same two colours in BT.709 with Y, Cb and Cr from 0 to 255, encoded by ffmpeg.
  const file = await fetch(new URL('./testing/full-range.mp4', import.meta.url));
  const frame = await readFrame(await file.blob());
  expectColor(frame, [80, 20], above);
  expectColor(frame, [80, 76], below);
});
