#!/usr/bin/env bash
# gifenc 1.0.3: a palette that holds every colour of a picture does not keep these colours.
#
# The picture is a dark gradient of 64 greys, one pixel each, and the palette lists the same 64 greys.
# Expected: 64 colours and no error. Observed: applyPalette() looks up the nearest colour for the
# first pixel of each cell of 5-6-5 bits (4-4-4, 4-4-4-4) and gives it to all later pixels of the cell,
# in each of the three formats. So 8 or 4 colours are left, grey 0 stands for grey 7 or 15, and the
# same pixels in reverse order give other colours. quantize() with 256 colours has the same cells.
#
# Output:
#   rgb565    quantize(256): 8  applyPalette: 8 of 64, off by up to 7,  same if reversed: 0 of 64
#   rgb444    quantize(256): 4  applyPalette: 4 of 64, off by up to 15, same if reversed: 0 of 64
#   rgba4444  quantize(256): 4  applyPalette: 4 of 64, off by up to 15, same if reversed: 0 of 64
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts gifenc@1.0.3

cat > show.mjs <<'JS'
import assert from 'node:assert/strict';
import gifenc from 'gifenc';

const greys = Array.from({ length: 64 }, (_, grey) => grey);
const pixels = (values) => Uint8Array.from(values.flatMap((v) => [v, v, v, 255]));

const expected = { rgb565: [8, 7], rgb444: [4, 15], rgba4444: [4, 15] };
for (const [format, [colours, error]] of Object.entries(expected)) {
  const palette = greys.map((v) => (format === 'rgba4444' ? [v, v, v, 255] : [v, v, v]));
  // The index into this palette is the grey itself.
  const forward = [...gifenc.applyPalette(pixels(greys), palette, format)];
  const backward = [...gifenc.applyPalette(pixels(greys.toReversed()), palette, format)].reverse();
  const found = gifenc.quantize(pixels(greys), 256, { format }).length;
  const kept = new Set(forward).size;
  const off = Math.max(...forward.map((v, i) => Math.abs(v - i)));
  const same = forward.filter((v, i) => v === backward[i]).length;
  console.log(
    `${format.padEnd(9)} quantize(256): ${found}  applyPalette: ${kept} of 64, ` +
      `off by up to ${`${off},`.padEnd(3)} same if reversed: ${same} of 64`,
  );
  assert.deepEqual([found, kept, off, same], [colours, colours, error, 0]);
}
JS
node show.mjs
