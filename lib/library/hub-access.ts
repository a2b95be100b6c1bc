import { briefPolicy, HubClient, type HubOptions, publicHub } from '../weights/hub';
import type { LibraryEnvironment } from './environment';
import type { ManagedModel } from './managed-model';
import type { Choices } from './records';

/**
 * Clients of the hub that is set. Each remembers its own lists of files only: what was asked for long
 * ago may have changed.
 */
export class HubAccess {
  /** A token for the life of this worker only. */
  #sessionToken: Choices['hubToken'] = null;

  /** @param chosen what the user has set */
  constructor(
    readonly environment: LibraryEnvironment,
    readonly chosen: () => Pick<Choices, 'hub' | 'hubToken'>,
  ) {}

  /** The user's token for this hub; a token of another hub stays unused. */
  get #token(): string | undefined {
    const known = [this.#sessionToken, this.chosen().hubToken];
    return known.find((one) => one?.hub === this.base)?.token;
  }

  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** Uses a token for this hub until the worker ends; null for none. */
  setSessionToken(token: string | null): void {
    this.#sessionToken = token === null ? null : { hub: this.base, token };
  }

  get base(): string {
    return this.chosen().hub ?? this.environment.defaultHub ?? publicHub;
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
    const token = this.#token;
    const common = { ...this.environment.hubOptions, token };
    return new HubClient(this.base, { ...common, ...options });
  }
}
