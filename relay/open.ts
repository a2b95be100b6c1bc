import type { Logger } from 'pino';
import { createKeys } from './access/keys';
import type { Config } from './config';
import { openDatabase } from './database';
import { createFiles, createLinks, createSpace, loadSecret } from './files';
import { createGuard } from './guard';
import { createIntake } from './intake';
import { createHeldClaims, createJobs, createSweeper, createWorkers } from './jobs';
import { createLimits } from './limits';
import { createLog, createMetrics } from './observe';
import type { Relay } from './relay';
import { repeat } from './server/loop';
import { createWebhooks, sweepDeliveries } from './webhooks';

/** Seconds between two looks for what is past its time. Nobody waits for it. */
const retentionSeconds = 60;

/** A relay that can be set to work and stopped. */
export interface RunningRelay extends Relay {
  /** Starts what goes on in the background: sweepers, webhooks, fetching of images. */
  start(): void;
  /**
   * Takes nothing new from now on and finishes what goes on in the background; held answers end. What
   * is already open goes on being answered.
   */
  finish(): Promise<void>;
  /** {@link finish}es, then closes everything, the database last. Calling it again waits for the same end. */
  stop(): Promise<void>;
}

/**
 * Opens every room of one node. Nothing goes on by itself before `start()`.
 *
 * @param config with the port that the server has: links are made of it
 * @throws Error with sentences as `openDatabase` does; what was opened before is closed again
 */
export async function openRelay(
  config: Config,
  options: { log?: Logger } = {},
): Promise<RunningRelay> {
  const log = options.log ?? createLog(config);
  /** What to close, the last first. */
  const closers: (() => Promise<unknown>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) {
      await close().catch((error: unknown) => log.error({ err: error }, 'a room did not close'));
    }
  };
  try {
    return await openRooms(config, log, (close) => closers.push(close), closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function openRooms(
  config: Config,
  log: Logger,
  onClose: (close: () => Promise<unknown>) => void,
  closeAll: () => Promise<void>,
): Promise<RunningRelay> {
  const metrics = createMetrics();
  const space = createSpace(config, log);
  const store = await openDatabase(config, log);
  onClose(() => store.close());
  const guard = createGuard({ allowPrivate: config.KINORA_ALLOW_PRIVATE });
  onClose(() => guard.close());
  const keys = createKeys({ store, config, log });
  const links = createLinks({ config, secret: await loadSecret(store) });
  const webhooks = createWebhooks({ store, config, guard, keys, links, log, metrics });
  const { outboxRow } = webhooks;
  const queue = createJobs({ store, config, outboxRow, log, metrics });
  const jobs: Relay['jobs'] = {
    ...queue,
    async submit(order) {
      await space.require();
      return await queue.submit(order);
    },
  };
  const limits = createLimits({ store, config, jobs, log });
  onClose(() => limits.close());
  const files = await createFiles({ config, store, keys, limits, guard, jobs, space });
  const fetched = createIntake({ config, store, guard, files, jobs, log });
  const intake: Relay['intake'] = {
    ...fetched,
    // Before the image of a submission is written, too.
    async accept(...order) {
      await space.require();
      return await fetched.accept(...order);
    },
  };
  const stopping = new AbortController();
  const heldClaims = createHeldClaims({ store, jobs, log, stopping: stopping.signal });
  onClose(() => heldClaims.close());
  const workers = createWorkers(store);
  metrics.watch({
    depth: () => jobs.depth(),
    workers: () => workers.list(),
    heldClaims: () => heldClaims.count,
  });

  const background: Promise<void>[] = [];
  let stopped: Promise<void> | null = null;
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
    intake,
    jobs,
    webhooks,
    heldClaims,
    workers,
    stopping: stopping.signal,
    start() {
      if (background.length > 0 || stopping.signal.aborted) return;
      const loop = { signal: stopping.signal, log };
      const fallen = (room: string) => (error: unknown) => {
        log.error({ err: error }, `${room} stopped working on this node`);
      };
      background.push(
        repeat('sweep of leases', config.KINORA_SWEEP_SECONDS, createSweeper(jobs, config), loop),
        repeat('check of the disk', config.KINORA_SWEEP_SECONDS, () => space.check(), loop),
        repeat('sweep of files', retentionSeconds, () => files.sweep(), loop),
        repeat('sweep of workers', retentionSeconds, () => workers.sweep(), loop),
        repeat('sweep of webhooks', retentionSeconds, () => sweepDeliveries(store, config), loop),
        webhooks.run(stopping.signal).catch(fallen('webhooks')),
        intake.run(stopping.signal).catch(fallen('intake')),
      );
    },
    finish,
    stop() {
      stopped ??= finish().then(closeAll);
      return stopped;
    },
  };
}
