/** What a page and its installing worker (`install-worker.ts`) say to each other; for tests only. */
export interface InstallTask {
  /** Address of the goldens' folder. */
  readonly goldens: string;
  /** Id under which the model is kept. */
  readonly model: string;
  /** Where the page kills it: when more than so many bytes of a component are safe. */
  readonly killedAt?: KilledAt;
}

/** A point of an installation. */
export interface KilledAt {
  readonly component: string;
  readonly bytes: number;
}

/** Whether a worker is to be killed at this message. */
export function isBeyond(killedAt: KilledAt | undefined, answer: InstallAnswer): boolean {
  if (answer.type !== 'progress' || answer.component !== killedAt?.component) return false;
  return answer.bytesDone > killedAt.bytes;
}

/** Messages while it works; `done` or `error` is the last one. */
export type InstallAnswer =
  | { readonly type: 'progress'; readonly component: string; readonly bytesDone: number }
  | { readonly type: 'restart'; readonly reason: string }
  | { readonly type: 'done' }
  | { readonly type: 'error'; readonly message: string };
