import { type ModelManifest, parseManifest } from '../manifest';

/** A manifest of a small model, for tests that only need one; the fields are as in its JSON. */
export function testManifest(fields: Readonly<Record<string, unknown>> = {}): ModelManifest {
  return parseManifest({
    id: 'm',
    name: 'Model M',
    description: '',
    family: 'wan22',
    licence: { name: 'Apache-2.0' },
    nativeSizes: {
      '1280*720': { width: 64, height: 32 },
      '720*1280': { width: 32, height: 64 },
    },
    framesPerSecond: 24,
    frameStride: 4,
    maxClipFrames: 121,
    ...fields,
  });
}
