#!/usr/bin/env bash
# @huggingface/gguf 0.4.6: a long text in a GGUF header is cut without an error; the rest is right.
#
# File: a header as the package's own serializeGgufMetadata() writes it, with a whole tokenizer.json
# under the standard key tokenizer.huggingface.json, then general.name.
# Expected: the text, or an error. Observed: the header is fetched in pieces of 2,000,000 bytes, and a
# text ends where the last fetched piece does. Its full length is skipped, so that the next key and the
# offset of the data are right and nothing tells that the text is short. Only a text that ends more
# than one piece beyond what was fetched raises an error.
#
# Output:
#   1800065 characters written, 1800065 read, next key 'end', parses: true
#   2600065 characters written, 1999881 read, next key 'end', parses: false
#   3400065 characters written, 1999881 read, next key 'end', parses: false
#   4200065 characters written, RangeError: Offset is outside the bounds of the DataView
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm install --silent --no-audit --no-fund --ignore-scripts @huggingface/gguf@0.4.6

cat > show.mjs <<'JS'
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { gguf, GGUFValueType as type, serializeGgufMetadata } from '@huggingface/gguf';

const key = 'tokenizer.huggingface.json';
const tokenizer = (pieces) => {
  const vocab = Array.from({ length: pieces }, (_, i) => [`piece${String(i).padStart(7, '0')}`, -1]);
  return JSON.stringify({ version: '1.0', model: { type: 'Unigram', unk_id: 0, vocab } });
};

function parses(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function show(pieces) {
  const text = tokenizer(pieces);
  const header = serializeGgufMetadata({
    version: { value: 3, type: type.UINT32 },
    tensor_count: { value: 0n, type: type.UINT64 },
    kv_count: { value: 0n, type: type.UINT64 },
    'general.architecture': { value: 't5encoder', type: type.STRING },
    [key]: { value: text, type: type.STRING },
    'general.name': { value: 'end', type: type.STRING },
  });
  writeFileSync('model.gguf', header);
  let seen;
  try {
    const { metadata, tensorDataOffset } = await gguf('model.gguf', { allowLocalFile: true });
    assert.equal(tensorDataOffset, BigInt(header.length));
    const read = metadata[key];
    assert.ok(text.startsWith(read));
    seen = `${read.length} read, next key '${metadata['general.name']}', parses: ${parses(read)}`;
  } catch (error) {
    seen = String(error);
  }
  console.log(`${text.length} characters written, ${seen}`);
  return seen;
}

assert.match(await show(90_000), /^18\d+ read, next key 'end', parses: true$/);
assert.match(await show(130_000), /^19\d+ read, next key 'end', parses: false$/);
assert.match(await show(170_000), /^19\d+ read, next key 'end', parses: false$/);
assert.match(await show(210_000), /^RangeError/);
JS
node show.mjs
