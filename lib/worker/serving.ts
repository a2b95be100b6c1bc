import { type EngineApi, exposeWorker } from '../contract';
import { createWorkerClient } from '../predictions/worker-client';
import type { ServingApi } from './api';
import { WorkerClient } from './client';
import { Adapters } from './inputs';
import { PendingUploads } from './pending-uploads';
import { ServeLoop, type WorkerAbilities } from './serve-loop';

/** Dependencies of a serving worker. */
export interface ServingDependencies {
  /** Starts a worker with an engine. */
  readonly startEngine: () => Worker;
  /** Abilities of this browser besides running a model. */
  readonly abilitiesOf: (modelId: string) => () => Promise<WorkerAbilities>;
}

/**
 * Starts the serving worker: claims and heartbeats live here, where the throttling of hidden pages does not
 * reach. The page speaks to it over Comlink.
 */
export function startServing({ startEngine, abilitiesOf }: ServingDependencies): void {
  const engine = createWorkerClient<EngineApi>('engine', startEngine);
  const pendingUploads = new PendingUploads();
  let loop: ServeLoop | null = null;

  const serving: ServingApi = {
    async serve(options, onEvent, onLease) {
      const { server, token, hub } = options;
      const client = new WorkerClient({ server, token });
      const adapters = new Adapters(client, hub);
      const abilities = abilitiesOf(options.model);
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
  exposeWorker(serving);
}
