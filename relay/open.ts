import { setMaxListeners } from 'node:events';
import type { Logger } from 'pino';
import { userAgent } from '../lib/contract/user-agent';
import { createKeys } from './access/keys';
import { createLimits } from './access/limits';
import type { Config } from './config';
import { createFiles, createLinks } from './files';
import { createGuard } from './guard/guard';
import { createHeldClaims, createJobs, createSweeper, createWatches, createWorkers } from './jobs';
import { once, repeat } from './loop';
import { createMetrics, type Metrics } from './observe/metrics';
import { installationSecret, openDatabase, type Store } from './store';
import { createWebhooks } from './webhooks/webhooks';

/** Interval of removing expired files, workers and webhooks, in seconds. */
const retentionSeconds = 60;
/** Interval of writing which workers were seen, in seconds. */
const workersSeconds = 1;

export type RunningRelay = ReturnType<typeof createParts>;
export type Relay = Omit<RunningRelay, 'start' | 'finish' | 'stop'>;

/**
 * Opens every part of one node. Background work begins with `start()`.
 *
 * @param config with the port that the server has: links are made of it
 * @throws Error with sentences as `openDatabase` does
 */
export async function openRelay(config: Config, log: Logger) {
  const store = await openDatabase(config, log);
  try {
    return createParts(config, log, store, await installationSecret(store.db, 'link_secret'));
  } catch (error) {
    await store.close();
    throw error;
  }
}

function createParts(config: Config, log: Logger, store: Store, secret: string) {
  const metrics: Metrics = createMetrics({
    depth: () => jobs.depth(),
    workers: () => workers.list(),
    heldClaims: () => heldClaims.count,
  });
  const keys = createKeys({ store, config, log });
  const links = createLinks({ config, secret });
  const guard = createGuard({
    allowPrivate: config.KINORA_ALLOW_PRIVATE,
    userAgent: userAgent(config.KINORA_REPORT_ADDRESS ?? links.publicUrl),
  });
  const webhooks = createWebhooks({ store, config, guard, keys, links, log, metrics });
  const jobs = createJobs({ store, config, outboxRow: webhooks.outboxRow, log, metrics });
  const limits = createLimits({ config, jobs });
  const files = createFiles({ config, store, links, guard, jobs, log });
  const stopping = new AbortController();
  // Every loop listens to it.
  setMaxListeners(0, stopping.signal);
  const workers = createWorkers(store);
  const heldClaims = createHeldClaims({ store, jobs, workers, log, stopping: stopping.signal });
  const watches = createWatches({ store, jobs, stopping: stopping.signal });

  const background: Promise<void>[] = [];
  const finish = async () => {
    stopping.abort();
    await Promise.allSettled(background);
  };
  return {
    config,
    log,
    metrics,
    store,
    keys,
    limits,
    guard,
    files,
    jobs,
    webhooks,
    heldClaims,
    workers,
    watches,
    /** Aborted when the node is being stopped: no new claims, held answers end. */
    stopping: stopping.signal,
    /** Starts what goes on in the background: sweepers, webhooks, fetching of images. */
    start(): void {
      if (background.length > 0 || stopping.signal.aborted) return;
      const loop = { signal: stopping.signal, log };
      background.push(
        repeat('sweep of leases', config.KINORA_SWEEP_SECONDS, createSweeper(jobs, config), loop),
        repeat('sweep of files', retentionSeconds, () => files.sweep(), loop),
        repeat('writing of workers', workersSeconds, () => workers.flush(), loop),
        repeat('sweep of workers', retentionSeconds, () => workers.sweep(), loop),
        repeat('sweep of webhooks', retentionSeconds, () => webhooks.sweep(), loop),
        webhooks.run(stopping.signal),
        files.intake.run(stopping.signal),
      );
    },
    /**
     * Takes nothing new from now on and finishes what goes on in the background; held answers end. Open requests are
     * still answered.
     */
    finish,
    /** Finishes, then closes everything, the database last. Calling it again waits for the same end. */
    stop: once(async () => {
      await finish();
      await guard.close();
      await store.close();
    }),
  };
}
