import { RequestQueue } from '../lib/predictions/queue/queue';
import { QueueRunner } from '../lib/predictions/queue/queue-runner';
import { getRunner } from './runner';

let queueRunner: QueueRunner | null = null;

/** The queue of this page. Call it in event handlers and effects only: it does not exist on the server. */
export function getQueueRunner(): QueueRunner {
  const runner = getRunner();
  queueRunner ??= new QueueRunner(
    new RequestQueue(runner.store.database),
    runner,
    async ({ name }) => {
      // The library is large, and the page must not wait for it.
      const { loraSource, openLora } = await import('../lib/library');
      return { name, file: await openLora(name), source: await loraSource(name) };
    },
  );
  return queueRunner;
}
