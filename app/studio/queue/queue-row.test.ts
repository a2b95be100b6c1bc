import { expect, test } from 'vitest';
import { type Created, parseManifest } from '../../../lib/contract';
import { newPrediction } from '../../../lib/predictions/testing/prediction';
import { entry } from '../../models/testing/entries';
import { factsOf } from './queue-row';

const base = entry();
const few = {
  name: 'Turbo',
  repository: 'owner/name',
  path: 'turbo.safetensors',
  licence: { name: 'Apache-2.0', commercial: true },
  scheduler: { kind: 'euler', timesteps: [1000, 750] },
};
const manifest = parseManifest({
  ...base.manifest,
  components: [...base.manifest.components, { id: 'adapter', bytes: 1 }],
  profiles: { standard: {}, 'ultra-fast': { adapters: [few] } },
});
const model = { ...base, manifest, origin: 'bundled', ready: true } as const;

test('a row shows the steps that its video takes, and no setting that it does not use', () => {
  const textsOf = (profile: 'standard' | 'ultra-fast', models = [model]) => {
    const prediction = newPrediction({ model: manifest.id, profile }) as Created;
    const source = { predictionId: '', image: new Blob(), imageName: 'a.png', loras: [] };
    return [...factsOf({ prediction, source }, models).values()].join(' · ');
  };
  expect(textsOf('standard')).toBe(
    'a.png · 1280×720 · 5 s · 6 steps · guidance 5 · shift 5 · seed 4',
  );
  expect(textsOf('ultra-fast')).toBe('a.png · 1280×720 · 5 s · Draft · 2 steps · seed 4');
  // Nothing is known of a model that is gone.
  expect(textsOf('ultra-fast', [])).toContain('6 steps · guidance 5');
});
