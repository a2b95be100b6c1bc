import type { Logger } from 'pino';
import { removeControl, writeControl } from '../access/control';
import { type Config, readConfig } from '../config';
import { createLog } from '../observe/log';
import type { RunningRelay } from '../open';
import { greet } from './greeting';
import { endOnSignals } from './signals';
import { type RunningServer, type StartOptions, startServer } from './start';

/** How the process of a node is run. */
export interface NodeOptions extends Pick<StartOptions, 'pages'> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Opens the relay only when a request needs it. */
  readonly lazy: boolean;
  /** Takes lines for people. */
  readonly say: (line: string) => void;
}

/**
 * Runs one node as this process, until a signal ends it. Resolves when it is up; in a lazy one that is
 * when its relay was needed.
 *
 * @throws Error with sentences, one a line, when it cannot start
 */
export async function runNode({ environment, lazy, pages, say }: NodeOptions): Promise<void> {
  const config = readConfig(environment);
  const log = createLog(config);
  let server: RunningServer | null = null;
  let ending = false;
  endOnSignals({
    log,
    say,
    limitMs: config.KINORA_STOP_SECONDS * 1000 + 5000,
    withParent: config.KINORA_END_WITH_PARENT,
    stop: async () => {
      ending = true;
      await server?.stop();
      await removeControl(config);
    },
  });
  server = await startServer({
    config,
    log,
    pages,
    lazy,
    open: (listening) => openNode(listening, log),
  });
  try {
    const relay = await server.relay;
    await writeControl(config, { origin: server.origin });
    for (const line of await greet(relay, config)) say(line);
  } catch (error) {
    // Stopped before it was up: the stop ends the process.
    if (ending) return;
    await server.stop();
    throw error;
  }
}

/** The relay at work, where Next's route handlers find it. Loaded late: pages do not need it. */
async function openNode(config: Config, log: Logger): Promise<RunningRelay> {
  const [{ openRelay }, { answer }, { setRelay }] = await Promise.all([
    import('../open'),
    import('../api/answer'),
    import('../door'),
  ]);
  const relay = await openRelay(config, { log });
  setRelay(relay, answer);
  relay.start();
  return relay;
}
