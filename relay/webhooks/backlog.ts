import type { DeliveryRow } from '../store/schema';
import { receiverOf } from './rows';

/** How much one node holds, and how much of it is sent at a time. */
export interface BacklogLimits {
  /** Attempts under way. */
  readonly concurrency: number;
  /** Attempts under way for one receiver, so that a dead one does not hold all. */
  readonly perReceiver: number;
}

/** Claimed for each attempt that may be under way: a look at the outbox is worth many attempts. */
const ahead = 6;

interface Waiting {
  readonly row: DeliveryRow;
  readonly startBy: number;
}

/** Deliveries that this node has claimed: under way, or waiting for their receiver's turn. */
export class Backlog {
  readonly #limits: BacklogLimits;
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #underWay = new Map<string, number>();
  #running = 0;

  constructor(limits: BacklogLimits) {
    this.#limits = limits;
  }

  /** Most that is held, of all and of one receiver. */
  get capacity(): { total: number; perReceiver: number } {
    const { concurrency, perReceiver } = this.#limits;
    return { total: concurrency * ahead, perReceiver: perReceiver * ahead };
  }

  /** What is held, by receiver. */
  held(): Map<string, number> {
    const held = new Map(this.#underWay);
    for (const [receiver, rows] of this.#waiting) {
      held.set(receiver, (held.get(receiver) ?? 0) + rows.length);
    }
    return held;
  }

  /** @param startBy when, in the same clock as {@link take}'s, a row is too old to be begun */
  add(rows: readonly DeliveryRow[], startBy: number): void {
    for (const row of rows) {
      const receiver = receiverOf(row.url);
      const waiting = this.#waiting.get(receiver);
      if (waiting) waiting.push({ row, startBy });
      else this.#waiting.set(receiver, [{ row, startBy }]);
    }
  }

  /**
   * The next one that may be begun; it counts as under way from now on. What waited too long is let go:
   * its lease ends, and it is claimed again.
   */
  take(now: number): DeliveryRow | null {
    if (this.#running >= this.#limits.concurrency) return null;
    for (const [receiver, waiting] of this.#waiting) {
      const busy = this.#underWay.get(receiver) ?? 0;
      if (busy >= this.#limits.perReceiver) continue;
      let next = waiting.shift();
      while (next && next.startBy < now) next = waiting.shift();
      this.#waiting.delete(receiver);
      // To the end: the receivers take turns.
      if (waiting.length > 0) this.#waiting.set(receiver, waiting);
      if (!next) continue;
      this.#underWay.set(receiver, busy + 1);
      this.#running += 1;
      return next.row;
    }
    return null;
  }

  /**
   * An attempt for a receiver has ended.
   *
   * @returns whether it is time to claim more: half of what may be held is gone
   */
  ended(receiver: string): boolean {
    const busy = (this.#underWay.get(receiver) ?? 1) - 1;
    if (busy > 0) this.#underWay.set(receiver, busy);
    else this.#underWay.delete(receiver);
    this.#running -= 1;
    const held = this.held();
    const total = [...held.values()].reduce((sum, count) => sum + count, 0);
    const { capacity } = this;
    return total <= capacity.total / 2 && (held.get(receiver) ?? 0) <= capacity.perReceiver / 2;
  }

  /** Gives up what has not been begun. */
  clear(): DeliveryRow[] {
    const rows = [...this.#waiting.values()].flat().map(({ row }) => row);
    this.#waiting.clear();
    return rows;
  }
}
