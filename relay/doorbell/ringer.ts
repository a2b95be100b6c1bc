/** What a ring depends on. */
export interface Ringable {
  readonly owner: string;
  /** Takes other owners' jobs too. */
  readonly shared: boolean;
  readonly idle: boolean;
  /** When it was rung last, in milliseconds of one clock; 0 for never. */
  rungAt: number;
}

/** Tabs that are rung for one job: some may not fit it, or be asleep. The rest finds it by time. */
const tabsPerJob = 4;
/** Most tabs that one round rings. */
const tabsPerRound = 64;
/** Jobs that come faster are told together. */
const roundMs = 100;

/**
 * The tabs to ring, those that waited longest first.
 *
 * @param owner whose job it is; `*` for a shared one, whose owner the message does not name: every tab
 * may be its owner's, those that take everybody's come first
 */
export function chooseTabs<Tab extends Ringable>(
  tabs: Iterable<Tab>,
  owner: string,
  jobs: number,
): Tab[] {
  const fitting = [...tabs].filter((tab) => tab.idle && (owner === '*' || tab.owner === owner));
  fitting.sort((a, b) => Number(b.shared) - Number(a.shared) || a.rungAt - b.rungAt);
  // Of an own job, sharing says nothing.
  if (owner !== '*') fitting.sort((a, b) => a.rungAt - b.rungAt);
  return fitting.slice(0, Math.min(tabsPerRound, tabsPerJob * jobs));
}

/**
 * Rings for waiting jobs: at once for the first, and for those that come within a tenth of a second
 * after it once more at its end. So a thousand submissions a second are ten rounds, and a tab that
 * asked just before a job was there is rung again.
 */
export class Ringer {
  readonly #rounds = new Map<string, { jobs: number; timer: NodeJS.Timeout }>();

  /** @param ring called with the owner and the number of jobs of a round */
  constructor(readonly ring: (owner: string, jobs: number) => void) {}

  /** A job of this owner became claimable. */
  jobAvailable(owner: string): void {
    const round = this.#rounds.get(owner);
    if (round !== undefined) {
      round.jobs++;
      return;
    }
    this.#open(owner);
    this.ring(owner, 1);
  }

  #open(owner: string): void {
    const timer = setTimeout(() => {
      const jobs = this.#rounds.get(owner)?.jobs ?? 0;
      this.#rounds.delete(owner);
      if (jobs === 0) return;
      this.#open(owner);
      this.ring(owner, jobs);
    }, roundMs);
    this.#rounds.set(owner, { jobs: 0, timer });
  }

  close(): void {
    for (const { timer } of this.#rounds.values()) clearTimeout(timer);
    this.#rounds.clear();
  }
}
