import { startLibrary } from '../lib/library/library-worker';
import { wan22Installation } from '../lib/models/wan22/install';

startLibrary({
  installation: wan22Installation,
  startHashThread: () => new Worker(new URL('./hash.ts', import.meta.url), { type: 'module' }),
});
