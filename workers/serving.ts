import * as Comlink from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { createEngineClient } from '../lib/predictions/engine-client';
import type { ServingApi } from '../lib/worker/api';
import { WorkerClient } from '../lib/worker/client';
import { Adapters } from '../lib/worker/inputs';
import { PendingUploads } from '../lib/worker/pending-uploads';
import { ServeLoop } from '../lib/worker/serve-loop';
import { installedAbilities } from './engine/tools';

/** The same engine as the studio's, in a worker below this one: a step does not hold up the heartbeats. */
const engine = createEngineClient(
  () => new Worker(new URL('./engine.ts', import.meta.url), { type: 'module' }),
);
const pendingUploads = new PendingUploads();
let loop: ServeLoop | null = null;

/**
 * The serving worker: claims and heartbeats live here, where the throttling of hidden pages does not
 * reach.
 */
const serving: ServingApi = {
  async serve(options, onEvent, onLease) {
    const { server, token, hub } = options;
    const client = new WorkerClient({ server, token });
    const adapters = new Adapters(client, hub);
    const abilities = installedAbilities(options.model);
    const services = { client, engine, adapters, pendingUploads, abilities };
    const dependencies = { options, ...services, onEvent, onLease };
    const mine = new ServeLoop(dependencies);
    loop = mine;
    try {
      await mine.run();
    } finally {
      if (loop === mine) loop = null;
    }
  },
  pause: async () => loop?.pause(),
  resume: async () => loop?.resume(),
  disconnect: async () => loop?.stop(),
  retryNow: async () => loop?.retryNow(),
};

// A connection that is back is used at once.
self.addEventListener('online', () => loop?.retryNow());
installErrorTransfer();
Comlink.expose(serving);
