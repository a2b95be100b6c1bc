import { startLibrary } from '../lib/library/library-worker';
import { modelFamilies } from '../lib/models';

startLibrary({
  families: modelFamilies,
  startHashThread: () => new Worker(new URL('./hash.ts', import.meta.url), { type: 'module' }),
});
