import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { WebSocketServer } from 'ws';
import { ApiError } from '../../lib/contract/v3';
import { requireOwnOrigin } from '../access/session';
import type { Config } from '../config';
import { addressGroup } from '../limits/address';
import type { Doorbell, Jobs, Keys, Limits } from '../relay';
import { addressHeader } from '../server/caller';
import { refuseUpgrade } from '../server/malformed';
import type { Store } from '../store/store';
import { presenceOf } from './presence';
import { chooseTabs, Ringer } from './ringer';
import { closeCodes, Tab } from './tab';

/** Largest message of a tab, in bytes: a hello has about 600. */
const maxMessageBytes = 16_384;
/** Sockets that may be open without having said hello. */
const maxStrangers = 200;
const maxStrangersPerAddress = 50;
/** How often a tab's changes of state are written down at most. */
const stateMs = 1000;
/** How often sockets are asked for a sign of life, and rows of connected workers are refreshed. */
const pingMs = 30_000;

/** What the doorbell needs of the node. */
export interface DoorbellDependencies {
  readonly store: Store;
  readonly keys: Pick<Keys, 'authenticate'>;
  readonly jobs: Pick<Jobs, 'get'>;
  readonly limits: Pick<Limits, 'address' | 'badKey'>;
  readonly config: Pick<Config, 'KINORA_PUBLIC_URL'>;
  readonly log: Logger;
}

/**
 * The doorbell: WebSockets of connected tabs. It only saves waiting (v3-api.md §3): a ring that is lost
 * delays a job by the worker's own interval, and no job depends on a socket.
 */
export function createDoorbell(dependencies: DoorbellDependencies): Doorbell {
  const { store, keys, jobs, limits, config, log } = dependencies;
  const presence = presenceOf(store);
  const server = new WebSocketServer({ noServer: true, maxPayload: maxMessageBytes });
  const tabs = new Set<Tab>();
  const writing = new Set<Promise<void>>();
  const stateTimers = new Map<Tab, NodeJS.Timeout>();
  let draining = false;

  /** Work on the table of workers: a failure is told and costs nothing else. */
  const noted = (work: Promise<unknown>) => {
    const told = work
      .catch((err: unknown) => log.warn({ err }, 'the list of workers could not be written'))
      .then(() => void writing.delete(told));
    writing.add(told);
  };
  const connected = () => [...tabs].filter((tab) => tab.caller !== null);
  const writeDown = (tab: Tab) => {
    if (tab.caller === null || tab.declaration === null) return;
    tab.writtenState = tab.state;
    noted(presence.seen(tab.caller, tab.declaration, tab.state));
  };
  const events = {
    onWelcome(tab: Tab) {
      if (draining) tab.send({ type: 'drain' });
      writeDown(tab);
    },
    onState(tab: Tab) {
      // The first change at once, all that follow within a second together at its end.
      if (stateTimers.has(tab)) return;
      const change = () => {
        stateTimers.delete(tab);
        if (tab.state === tab.writtenState) return;
        stateTimers.set(tab, setTimeout(change, stateMs).unref());
        writeDown(tab);
      };
      change();
    },
    onBadToken: (tab: Tab) => limits.badKey(tab.address),
    onClose(tab: Tab) {
      tabs.delete(tab);
      clearTimeout(stateTimers.get(tab));
      stateTimers.delete(tab);
      const id = tab.workerId;
      // A reloaded page may be back before its old socket is known to be closed.
      if (id === null || connected().some((other) => other.workerId === id)) return;
      noted(presence.gone(id));
    },
  };

  const open = (request: IncomingMessage, socket: Duplex, head: Buffer, address: string) => {
    if (socket.destroyed) return;
    const strangers = [...tabs].filter((tab) => tab.caller === null);
    const near = strangers.filter((tab) => addressGroup(tab.address) === addressGroup(address));
    if (draining || strangers.length >= maxStrangers || near.length >= maxStrangersPerAddress) {
      socket.end(
        'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n',
      );
      return;
    }
    server.handleUpgrade(request, socket, head, (opened) => {
      tabs.add(new Tab(opened, address, keys, events));
    });
  };

  const ringer = new Ringer((owner, count) => {
    for (const tab of chooseTabs(tabs, owner, count)) {
      tab.rungAt = performance.now();
      tab.send({ type: 'job_available' });
    }
  });

  /** The tab that has a cancelled job, if it is one of this node's. */
  async function tellCancel(id: string): Promise<void> {
    if (tabs.size === 0) return;
    const job = await jobs.get(id);
    for (const tab of tabs) {
      const has = tab.workerId === job?.workerId && tab.caller?.keyId === job?.workerToken;
      if (job !== null && has) tab.send({ type: 'cancel', id });
    }
  }

  const listening = [
    store.listen('jobAvailable', (owner) => {
      if (!draining) ringer.jobAvailable(owner);
    }),
    store.listen('cancel', (id) => {
      tellCancel(id).catch((err: unknown) => log.warn({ err }, 'a cancel was not told'));
    }),
  ];
  for (const one of listening) {
    // Workers then find jobs by time, and hear of a cancel with their next beat.
    one.catch((err: unknown) => log.error({ err }, 'the doorbell hears nothing'));
  }

  const timer = setInterval(() => {
    for (const tab of tabs) {
      tab.ping();
      void tab.recheck();
      // Written whole: another node may have taken the row away, with an older socket of this tab.
      writeDown(tab);
    }
    noted(presence.sweep());
  }, pingMs);
  timer.unref();

  return {
    upgrade(request, socket, head) {
      if (!isOwnOrigin(request, config.KINORA_PUBLIC_URL)) {
        socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
        return;
      }
      const address = addressOf(request);
      limits.address(address).then(
        () => open(request, socket, head, address),
        (thrown: unknown) =>
          refuseUpgrade(socket, thrown instanceof ApiError ? thrown : new ApiError('INTERNAL')),
      );
    },
    seen: (caller, worker, state) => presence.seen(caller, worker, state),
    list: (owner) => presence.list(owner),
    get connected() {
      return connected().length;
    },
    drain() {
      draining = true;
      for (const tab of tabs) {
        tab.send({ type: 'drain' });
        // Who has a job keeps its lease and goes on with the next node; the others have nothing here.
        if (tab.state !== 'busy') tab.socket.close(closeCodes.restart);
      }
    },
    async close() {
      draining = true;
      clearInterval(timer);
      ringer.close();
      await Promise.allSettled(listening.map(async (one) => (await one)()));
      const closed = [...tabs].map(
        (tab) =>
          new Promise<void>((resolve) => {
            tab.socket.once('close', () => resolve());
            tab.socket.close(closeCodes.goingAway);
            // A peer that does not answer the closing handshake is not waited for.
            setTimeout(() => tab.socket.terminate(), 500).unref();
          }),
      );
      await Promise.all(closed);
      // The database may be closed next.
      await Promise.all(writing);
      server.close();
    },
  };
}

/**
 * Browsers name the page that opens a socket: only our own pages may. What is no browser names none,
 * and its token alone counts.
 */
function isOwnOrigin({ headers }: IncomingMessage, publicUrl: string | undefined): boolean {
  const { origin, host = null } = headers;
  if (origin === undefined) return true;
  try {
    requireOwnOrigin({ method: 'POST', origin, host }, publicUrl);
    return true;
  } catch {
    return false;
  }
}

/** As the server tells it in front of every handler. */
function addressOf({ headers, socket }: IncomingMessage): string {
  const told = headers[addressHeader];
  return typeof told === 'string' ? told : (socket.remoteAddress ?? '');
}
