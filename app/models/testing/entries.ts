import type { ComponentId, ModelEntry, PartState, StoredComponent } from '../../../lib/contract';
import { testManifest } from '../../../lib/contract/testing/manifest';

/** A part of a model for tests of what is derived from it. */
export function part(component: ComponentId, changes: Partial<PartState> = {}): PartState {
  return {
    component,
    status: 'absent',
    bytesDone: 0,
    bytesTotal: 1000,
    bytesStored: 0,
    ...changes,
  };
}

export function storedPart(changes: Partial<StoredComponent> = {}): StoredComponent {
  return {
    component: 'transformer',
    sources: [{ name: 'a/b/c.gguf@main', bytes: 1000, sha256: null }],
    sourceType: 'Q8_0',
    precision: 'int8',
    worst: null,
    bytesStored: 900,
    completedAt: '2026-01-02T00:00:00.000Z',
    verifiedAt: '2026-01-02T00:00:00.000Z',
    ...changes,
  };
}

const need = { full: 8e9, least: 4e9 };

export function entry(changes: Partial<ModelEntry> = {}): ModelEntry {
  return {
    manifest: testManifest({
      id: 'wan',
      name: 'Wan',
      precision: 'int8',
      choices: [
        { precision: 'int8', name: 'Eight', memory: { standard: need, 'ultra-fast': need } },
      ],
    }),
    origin: 'listed',
    ready: false,
    precision: null,
    parts: [part('transformer'), part('vae')],
    stored: [],
    elsewhere: null,
    bytesPerSecond: 0,
    ...changes,
  };
}
