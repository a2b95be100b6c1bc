import { Queue } from '../lib/predictions/queue';
import type { RunState } from '../lib/predictions/run-state';
import { Runner } from '../lib/predictions/runner';
import { PredictionStore } from '../lib/predictions/store';
import { engine } from './engine';
import { keepAwake, warnOnLeave } from './shared/browser';
import { announceRuns } from './shared/finished';
import { percentDone } from './shared/run-progress';
import { showJob } from './shared/running-job';

let runner: Runner | null = null;
let queue: Queue | null = null;

/** The runner of this page. Call it in event handlers and effects only: it does not exist on the server. */
export function getRunner(): Runner {
  runner ??= createRunner();
  return runner;
}

/** What waits in this browser; as {@link getRunner}. */
export function getQueue(): Queue {
  queue ??= new Queue(getRunner());
  return queue;
}

function createRunner(): Runner {
  const created = new Runner(
    new PredictionStore(),
    engine,
    async (file) => (await import('../lib/video/image')).readImageFile(file),
    async (name) => {
      // The library is large, and the page must not wait for it.
      const { loraSource, openLora } = await import('../lib/library');
      return { name, file: await openLora(name), source: await loraSource(name) };
    },
  );
  created.subscribe(() => follow(created.getSnapshot()));
  announceRuns(created);
  return created;
}

/** Ends what holds while a video is made; null where none is. */
let busy: AbortController | null = null;

/** While a video is made, whatever page is open: it is shown, the screen stays on, and closing warns. */
function follow(run: RunState): void {
  if (run.status === 'idle') {
    busy?.abort();
    busy = null;
    showJob('/', null);
    return;
  }
  if (!busy) {
    busy = new AbortController();
    keepAwake(busy.signal);
    warnOnLeave(busy.signal);
  }
  const progress = run.status === 'running' ? run.progress : null;
  const isElsewhere = run.status === 'waiting' && run.elsewhere;
  showJob('/', {
    percent: progress && percentDone(progress),
    secondsRemaining: progress?.secondsRemaining ?? null,
    state: isElsewhere ? 'waiting' : 'running',
  });
}
