import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ClaimAnswer, WorkerDeclaration } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import { Kept } from '../kept';
import { type Store, storageDown } from '../store/store';
import { workerName } from './context';
import type { Jobs } from './index';
import type { ClaimedJob } from './lease';
import type { Workers } from './workers';

/** Most claims that one node holds; each costs a connection. */
const mostHeld = 5000;
/** How often held claims are tried without an announcement: one may be lost, and a retry becomes due. */
const tryEveryMs = 5000;
/** How long is used what people are shown of the queue, in milliseconds, and of how many kinds of claims. */
const shownMs = 1000;
const shownKinds = 1000;
/** A try that found nothing and took longer passed over many jobs, in milliseconds. */
const slowMissMs = 50;
/** Pause after a slow try, as a multiple of its length, and the longest after a round, in milliseconds. */
const pausePerSlowMiss = 10;
const longestPauseMs = 5000;

/** A worker's request for a job. */
export interface ClaimRequest {
  readonly caller: Caller;
  readonly worker: WorkerDeclaration;
  /** The worker is connected and takes no job now. */
  readonly paused: boolean;
}

/** Claims of the same kind fit the same jobs, but for those that one of their workers failed at. */
interface KeyedClaim extends ClaimRequest {
  readonly kind: string;
}

/** A claim that waits. */
interface HeldClaim extends KeyedClaim {
  end(job: ClaimedJob | null): void;
}

/** Claims that wait for a job on this node (README.md). @param dependencies.stopping ends every one */
export function createHeldClaims(dependencies: {
  readonly store: Pick<Store, 'listen'>;
  readonly jobs: Pick<
    Jobs,
    'claimNext' | 'failedLately' | 'release' | 'waitingPools' | 'countWaiting' | 'skippedFor'
  >;
  readonly workers: Pick<Workers, 'flush'>;
  readonly log: Logger;
  readonly stopping: AbortSignal;
}) {
  const { store, jobs, workers, log, stopping } = dependencies;
  /** By worker, the longest wait first. */
  const held = new Map<string, HeldClaim>();
  /** Pools that were announced since the last round: payloads of `jobAvailable`, or `all`. */
  let announced = new Set<string>();
  let running = false;
  /** Facts until the next announcement: whose jobs wait, and for which kinds of claims nothing was found. */
  const nothingKnown = () => ({
    pools: new Kept<(caller: Caller) => boolean>(tryEveryMs, 1),
    nothingFor: new Set<string>(),
    tries: new Map<string, Promise<ClaimedJob | null>[]>(),
    skipped: new Kept<ClaimAnswer['skipped']>(shownMs, shownKinds),
    counts: new Kept<number>(shownMs, shownKinds),
  });
  let known = nothingKnown();
  const mayFind = async (caller: Caller) => (await known.pools.get('', jobs.waitingPools))(caller);

  function announce(pool: string): void {
    known = nothingKnown();
    wake(pool);
  }

  function wake(pool: string): void {
    if (held.size === 0) return;
    announced.add(pool);
    if (!running) void run();
  }

  /**
   * The next job for a claim. Of a kind, two are tried after one that found a job, and so on: one that finds nothing
   * speaks for those behind it. Where nothing waits it costs no query.
   */
  function tryNext({ caller, worker, kind }: KeyedClaim, client?: AbortSignal) {
    const turn = async (): Promise<ClaimedJob | null> => {
      const { pools, nothingFor } = known;
      if (nothingFor.has(kind) || client?.aborted || stopping.aborted) return null;
      if (await mayFind(caller)) {
        // A claim compares its worker with the others.
        await workers.flush().catch((error: unknown) => {
          if (storageDown(error)) throw error;
          log.warn({ err: error }, 'workers could not be written');
        });
        const job = await jobs.claimNext(caller, worker);
        // It may have been the last one.
        if (job) pools.forget('');
        // A job that is withheld from a worker that failed at it may fit another worker of its kind.
        if (job || (await jobs.failedLately(caller, worker))) return job;
      }
      nothingFor.add(kind);
      return null;
    };
    const { tries } = known;
    const earlier = tries.get(kind) ?? [];
    tries.set(kind, earlier);
    const before = earlier[((earlier.length + 1) >> 1) - 1];
    const trying = (before ?? Promise.resolve()).then(turn, (error: unknown) => {
      // If the database is down, the claims behind it would wait for it one after the other.
      if (storageDown(error)) throw error;
      return turn();
    });
    earlier.push(trying);
    trying.catch(() => tries.get(kind) === earlier && tries.delete(kind));
    return trying;
  }

  async function run(): Promise<void> {
    running = true;
    while (announced.size > 0 && held.size > 0 && !stopping.aborted) {
      const concerned = announced;
      announced = new Set();
      const pauseMs = await round(concerned).catch((err: unknown) => {
        log.warn({ err }, 'held claims could not be tried');
        return longestPauseMs;
      });
      await delay(Math.min(pauseMs, longestPauseMs), undefined, { ref: false });
    }
    running = false;
  }

  /**
   * Tries the claims that an announcement concerns. @returns how long to rest: claims that fit nothing must not keep
   * the database busy, however many jobs they pass over
   */
  async function round(concerned: ReadonlySet<string>): Promise<number> {
    const isAll = concerned.has('all');
    const shared = isAll || [...concerned].some((pool) => pool.startsWith('shared:'));
    const concerns = ({ owner, shared: takesShared }: Caller) =>
      (takesShared && shared) ||
      ['all', `own:${owner}`, `shared:${owner}`].some((pool) => concerned.has(pool));
    let restMs = 0;
    for (const [name, claim] of [...held]) {
      if (claim.paused || !concerns(claim.caller) || known.nothingFor.has(claim.kind)) continue;
      if (held.get(name) !== claim) continue;
      const startedAt = performance.now();
      const job = await tryNext(claim).catch((err: unknown) => {
        // Without the database no claim can succeed; any other error concerns this claim only.
        if (storageDown(err)) throw err;
        log.error({ err }, 'a held claim failed');
        return 'failed' as const;
      });
      if (job === 'failed') continue;
      if (!job) {
        const ms = performance.now() - startedAt;
        restMs += ms > slowMissMs ? ms * pausePerSlowMiss : ms;
      } else if (held.get(name) === claim) {
        claim.end(job);
      } else {
        await jobs.release(job.id, job.leaseToken);
      }
    }
    return restMs;
  }

  function hold(request: KeyedClaim, ms: number, client: AbortSignal): Promise<ClaimedJob | null> {
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
    async claim(asked: ClaimRequest, ms: number, client: AbortSignal): Promise<ClaimedJob | null> {
      const request = { ...asked, kind: kindOf(asked) };
      // A worker waits once: an earlier claim has lost its connection, or said something else.
      held.get(nameOf(request))?.end(null);
      // The messages about what this node has changed are delivered by then.
      await nextTurn();
      const before = known;
      const job = request.paused ? null : await tryNext(request, client);
      if (job || ms <= 0 || client.aborted || stopping.aborted || held.size >= mostHeld) return job;
      const ended = hold(request, ms, client);
      // A job that came between the try and the wait.
      if (known !== before) wake(`own:${request.caller.owner}`);
      return await ended;
    },
    /** The number of jobs that wait for a worker of this caller, up to a second old: every tab asks again and again. */
    async waiting(caller: Caller): Promise<number> {
      const pool = `${caller.shared} ${caller.owner}`;
      if (!(await mayFind(caller))) return 0;
      return await known.counts.get(pool, () => jobs.countWaiting(caller));
    },
    /** Why claims of this kind get nothing, up to a second old. */
    async skippedFor(request: Omit<ClaimRequest, 'paused'>): Promise<ClaimAnswer['skipped']> {
      const { caller, worker } = request;
      if (!(await mayFind(caller))) return {};
      return await known.skipped.get(kindOf(request), () => jobs.skippedFor(caller, worker));
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

function kindOf({ caller, worker }: Omit<ClaimRequest, 'paused'>): string {
  const { worker_id: _id, name: _name, backend: _backend, ...fitted } = worker;
  const lists = { sizes: fitted.sizes.toSorted(), knows: fitted.knows.toSorted() };
  return JSON.stringify([caller.owner, caller.shared, { ...fitted, ...lists }]);
}
