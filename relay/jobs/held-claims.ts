import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { type Store, storageDown } from '../store/store';
import { workerName } from './context';
import type { Jobs } from './index';
import type { ClaimedJob } from './lease';

/** Most claims that one node holds; each costs a connection. */
const mostHeld = 5000;
/** How often held claims are tried without an announcement: one may be lost, and a retry becomes due. */
const tryEveryMs = 5000;
/** Tries that found nothing and took longer passed over many jobs, in milliseconds. */
const slowMissMs = 50;
/** Pause after slow tries, as a multiple of their length, and its longest, in milliseconds. */
const pausePerSlowMiss = 10;
const longestPauseMs = 5000;

/** A worker's request for a job. */
export interface ClaimRequest {
  readonly caller: Caller;
  readonly worker: WorkerDeclaration;
  /** The worker is connected and takes no job now. */
  readonly paused: boolean;
}

/** A claim that waits. */
interface HeldClaim extends ClaimRequest {
  end(job: ClaimedJob | null): void;
}

/** Claims that wait for a job on this node (README.md). @param dependencies.stopping ends every one */
export function createHeldClaims(dependencies: {
  readonly store: Pick<Store, 'listen'>;
  readonly jobs: Pick<Jobs, 'claimNext' | 'release'>;
  readonly log: Logger;
  readonly stopping: AbortSignal;
}) {
  const { store, jobs, log, stopping } = dependencies;
  /** By worker, the longest wait first. */
  const held = new Map<string, HeldClaim>();
  /** Pools that were announced since the last round: payloads of `jobAvailable`, or `all`. */
  let announced = new Set<string>();
  let announcements = 0;
  let running = false;

  function announce(pool: string): void {
    announcements += 1;
    if (held.size === 0) return;
    announced.add(pool);
    if (!running) void run();
  }

  async function run(): Promise<void> {
    running = true;
    while (announced.size > 0 && held.size > 0 && !stopping.aborted) {
      const pools = announced;
      announced = new Set();
      const missMs = await round(pools).catch((err: unknown) => {
        log.warn({ err }, 'held claims could not be tried');
        return longestPauseMs;
      });
      // Claims that fit nothing must not keep the database busy, however many jobs they pass over.
      const pauseMs = missMs > slowMissMs ? missMs * pausePerSlowMiss : missMs;
      await delay(Math.min(pauseMs, longestPauseMs), undefined, { ref: false });
    }
    running = false;
  }

  /** Tries the claims that an announcement concerns. @returns how long tries took that found nothing */
  async function round(pools: ReadonlySet<string>): Promise<number> {
    const shared = pools.has('all') || [...pools].some((pool) => pool.startsWith('shared:'));
    const concerns = ({ owner, shared: takesShared }: Caller) =>
      (takesShared && shared) ||
      ['all', `own:${owner}`, `shared:${owner}`].some((pool) => pools.has(pool));
    const nothingFor = new Set<string>();
    let missMs = 0;
    for (const [name, claim] of [...held]) {
      const { caller, worker } = claim;
      const kind = kindOf(claim);
      if (claim.paused || !concerns(caller) || nothingFor.has(kind)) continue;
      if (held.get(name) !== claim) continue;
      const startedAt = performance.now();
      const job = await jobs.claimNext(caller, worker).catch((err: unknown) => {
        // Without the database no claim can succeed; any other error concerns this claim only.
        if (storageDown(err)) throw err;
        log.error({ err }, 'a held claim failed');
        return 'failed' as const;
      });
      if (job === 'failed') continue;
      if (!job) {
        missMs += performance.now() - startedAt;
        nothingFor.add(kind);
        // By time another of its kind is tried: a job that this worker failed at may fit that one.
        if (pools.has('all') && held.delete(name)) held.set(name, claim);
      } else if (held.get(name) === claim) {
        claim.end(job);
      } else {
        await jobs.release(job.id, job.leaseToken);
      }
    }
    return missMs;
  }

  function hold(
    request: ClaimRequest,
    ms: number,
    client: AbortSignal,
  ): Promise<ClaimedJob | null> {
    const name = nameOf(request);
    return new Promise((resolve) => {
      const end = (job: ClaimedJob | null) => {
        clearTimeout(timer);
        client.removeEventListener('abort', onAbort);
        if (held.get(name) === claim) held.delete(name);
        resolve(job);
      };
      const onAbort = () => end(null);
      const claim: HeldClaim = { ...request, end };
      const timer = setTimeout(onAbort, ms);
      held.set(name, claim);
      client.addEventListener('abort', onAbort);
    });
  }
  const stopListening = store.listen('jobAvailable', announce);
  const timer = setInterval(() => announce('all'), tryEveryMs).unref();
  stopping.addEventListener('abort', () => {
    clearInterval(timer);
    stopListening();
    for (const claim of [...held.values()]) claim.end(null);
  });

  return {
    /** Number of claims that this node holds. */
    get count(): number {
      return held.size;
    },
    /** Whether a claim of this worker is held here. */
    isHeld: (worker: Omit<ClaimRequest, 'paused'>): boolean => held.has(nameOf(worker)),
    /**
     * Gives a job at once where there is one, else as soon as one comes. An earlier claim of the same
     * worker ends without a job.
     *
     * @param ms longest wait in milliseconds
     * @param client aborts when the connection has ended
     * @returns null when the time is over, the client has disconnected, or the node is being stopped
     */
    async claim(
      request: ClaimRequest,
      ms: number,
      client: AbortSignal,
    ): Promise<ClaimedJob | null> {
      const { caller, worker, paused } = request;
      // A worker waits once: an earlier claim has lost its connection, or said something else.
      held.get(nameOf(request))?.end(null);
      const before = announcements;
      const job = paused ? null : await jobs.claimNext(caller, worker);
      if (job || ms <= 0 || client.aborted || stopping.aborted || held.size >= mostHeld) return job;
      const ended = hold(request, ms, client);
      // A job that came between the try and the wait.
      if (announcements !== before) announce(`own:${caller.owner}`);
      return await ended;
    },
    /** A full node holds no more claims: each is answered at once. */
    get isFull(): boolean {
      return held.size >= mostHeld;
    },
  };
}

export type HeldClaims = ReturnType<typeof createHeldClaims>;

const nameOf = ({ caller, worker }: Omit<ClaimRequest, 'paused'>): string =>
  workerName(caller.keyId, worker.worker_id);

/** Claims of the same kind fit the same jobs, but for those that one of their workers failed at. */
function kindOf({ caller, worker }: HeldClaim): string {
  const { worker_id: _id, name: _name, backend: _backend, ...fitted } = worker;
  const lists = { sizes: fitted.sizes.toSorted(), knows: fitted.knows.toSorted() };
  return JSON.stringify([caller.owner, caller.shared, { ...fitted, ...lists }]);
}
