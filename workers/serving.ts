import { installedAbilities } from '../lib/engine/tools';
import { modelFamilies } from '../lib/models';
import { startServing } from '../lib/worker/serving';

startServing({
  // The same engine as the studio's, in a worker below this one: a step does not hold up the heartbeats.
  startEngine: () => new Worker(new URL('./engine.ts', import.meta.url), { type: 'module' }),
  abilitiesOf: (model) => installedAbilities(modelFamilies, model),
});
