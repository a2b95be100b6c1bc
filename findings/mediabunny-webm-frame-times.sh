#!/usr/bin/env bash
# mediabunny 1.61.0: in a WebM the packet at i / rate is often packet i - 1, and the last has no length.
#
# Input: 49 packets at i / rate with a duration of 1 / rate, written to MP4 and WebM and read back.
# Expected: getPacket(i / rate) finds packet i, the duration is 49 / rate. Observed in WebM: a time that
# was rounded up to whole milliseconds lies behind i / rate, and the reader compares without tolerance,
# so that the packet before is found: for every third time at 24 and 30 frames per second, for every
# second one at 16. The packets' durations are dropped: 2.042 s become 2 s with 24.5 frames per second.
# The track's option frameRate brings the duration back, but does not change what is found.
#
# Output:
#   MP4   16 fps                  duration 3.063 of 3.063  rate 16.00  wrong packet for  0 of 49 times
#   WebM  16 fps                  duration 3.000 of 3.063  rate 16.33  wrong packet for 24 of 49 times
#   WebM  16 fps, with frameRate  duration 3.063 of 3.063  rate 16.00  wrong packet for 24 of 49 times
#   MP4   24 fps                  duration 2.042 of 2.042  rate 24.00  wrong packet for  0 of 49 times
#   WebM  24 fps                  duration 2.000 of 2.042  rate 24.50  wrong packet for 16 of 49 times
#   WebM  24 fps, with frameRate  duration 2.042 of 2.042  rate 24.00  wrong packet for 16 of 49 times
#   MP4   30 fps                  duration 1.633 of 1.633  rate 30.00  wrong packet for  0 of 49 times
#   WebM  30 fps                  duration 1.600 of 1.633  rate 30.63  wrong packet for 16 of 49 times
#   WebM  30 fps, with frameRate  duration 1.633 of 1.633  rate 30.00  wrong packet for 16 of 49 times
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts mediabunny@1.61.0

cat > show.mjs <<'JS'
import assert from 'node:assert/strict';
import {
  ALL_FORMATS, BufferSource, BufferTarget, EncodedPacket, EncodedPacketSink,
  EncodedVideoPacketSource, Input, Mp4OutputFormat, Output, WebMOutputFormat,
} from 'mediabunny';

const count = 49;
const decoderConfig = { codec: 'vp09.00.10.08', codedWidth: 64, codedHeight: 64 };

async function write(format, rate, options) {
  const output = new Output({ format, target: new BufferTarget() });
  const source = new EncodedVideoPacketSource('vp9');
  output.addVideoTrack(source, options);
  await output.start();
  for (let i = 0; i < count; i++) {
    // The first bytes of a VP9 frame; its last byte is its number. Nothing here decodes it.
    const data = Uint8Array.from([i ? 0x86 : 0x82, 0x49, 0x83, 0x42, 0, i]);
    const packet = new EncodedPacket(data, i ? 'delta' : 'key', i / rate, 1 / rate);
    await source.add(packet, i ? undefined : { decoderConfig });
  }
  await output.finalize();
  return output.target.buffer;
}

async function show(name, format, rate, options, expected) {
  const source = new BufferSource(await write(format, rate, options));
  const input = new Input({ source, formats: ALL_FORMATS });
  const track = await input.getPrimaryVideoTrack();
  const { averagePacketRate } = await track.computePacketStats();
  const duration = (await input.computeDuration()).toFixed(3);
  const sink = new EncodedPacketSink(track);
  let wrong = 0;
  for (let i = 0; i < count; i++) {
    const number = (await sink.getPacket(i / rate)).data.at(-1);
    assert.ok(number === i || number === i - 1);
    if (number !== i) wrong += 1;
  }
  const title = `${name.padEnd(5)} ${rate} fps${options ? ', with frameRate' : ''}`.padEnd(29);
  console.log(
    `${title} duration ${duration} of ${(count / rate).toFixed(3)}  ` +
      `rate ${averagePacketRate.toFixed(2)}  ` +
      `wrong packet for ${String(wrong).padStart(2)} of ${count} times`,
  );
  assert.deepEqual([duration, wrong], expected);
}

for (const [rate, exact, short, wrong] of [
  [16, '3.063', '3.000', 24],
  [24, '2.042', '2.000', 16],
  [30, '1.633', '1.600', 16],
]) {
  await show('MP4', new Mp4OutputFormat(), rate, undefined, [exact, 0]);
  await show('WebM', new WebMOutputFormat(), rate, undefined, [short, wrong]);
  await show('WebM', new WebMOutputFormat(), rate, { frameRate: rate }, [exact, wrong]);
}
JS
node show.mjs
