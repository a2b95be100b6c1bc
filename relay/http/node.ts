import { rename, rm, writeFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import { removeControl, writeControl } from '../access/control';
import { type Config, readConfig } from '../config';
import { createLog } from '../observe/log';
import type { RunningRelay } from '../open';
import { endOnSignals } from './process';
import { type RunningServer, type StartOptions, startServer } from './start';

/**
 * What people are told when the node is up. On the very first start this is the one time that the keys
 * are shown; they go to the terminal alone, which is why this is not a line of the log.
 *
 * @returns lines for the terminal
 */
export async function greet(
  relay: RunningRelay,
  config: Pick<Config, 'KINORA_FIRST_START_FILE'>,
): Promise<readonly string[]> {
  const { publicUrl } = relay.files.links;
  const first = await relay.keys.firstStart();
  const everyStart = [
    `Kinora runs at ${publicUrl}`,
    `  Connect a tab: ${publicUrl}/serve`,
    `  Manage keys:   ${publicUrl}/keys, sign in with \`npm run keys -- sign-in\``,
  ];
  if (!first) return everyStart;
  const made = [
    ...(first.apiKey === '' ? [] : [`  API key       ${first.apiKey}`]),
    ...(first.workerToken === '' ? [] : [`  Worker token  ${first.workerToken}`]),
  ];
  if (config.KINORA_FIRST_START_FILE) {
    await writeSecretly(config.KINORA_FIRST_START_FILE, JSON.stringify({ publicUrl, ...first }));
  }
  return [
    ...everyStart,
    '',
    'This is its first start. The lines below are shown this once: keep what they hold.',
    '',
    ...made,
    '',
    'Sign in within the hour, once, to manage keys in the browser:',
    `  ${publicUrl}/keys#sign-in=${first.signInToken}`,
    '',
  ];
}

/** Whole or not at all, and of this user alone: a file that is there may be readable by others. */
async function writeSecretly(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await rm(draft, { force: true });
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
}

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
    import('./answer'),
    import('./route-handler'),
  ]);
  const relay = await openRelay(config, { log });
  setRelay(relay, answer);
  relay.start();
  return relay;
}
