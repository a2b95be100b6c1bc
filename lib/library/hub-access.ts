import { briefPolicy, HubClient, type HubOptions, publicHub } from '../weights/hub';
import type { LibraryEnvironment } from './environment';
import type { ManagedModel } from './managed-model';

/**
 * Clients of the hub that is set. Each remembers its own lists of files only: what was asked for long
 * ago may have changed.
 */
export class HubAccess {
  /** @param chosen base address that the user has set; null without one */
  constructor(
    readonly environment: LibraryEnvironment,
    readonly chosen: () => string | null,
  ) {}

  get base(): string {
    return this.chosen() ?? this.environment.defaultHub ?? publicHub;
  }

  /** A client with the standard retry policy. With a model, its parts show a notice for each wait. */
  client(model?: ManagedModel): HubClient {
    return this.#create({
      onWait: (sentence, waitMs) => {
        const seconds = Math.ceil(waitMs / 1000);
        if (!model || seconds < 2) return;
        const notice = `Trying again in ${seconds} s: ${sentence}.`;
        for (const { component, status } of model.parts) {
          if (status === 'downloading') model.dispatch(component, { type: 'noticed', notice });
        }
      },
    });
  }

  /** A client that gives up after seconds, for answers that a person waits for. */
  brief(): HubClient {
    return this.#create({ policy: { ...briefPolicy, ...this.environment.hubOptions?.policy } });
  }

  #create(options: HubOptions): HubClient {
    return new HubClient(this.base, { ...this.environment.hubOptions, ...options });
  }
}
