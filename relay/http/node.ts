import type { Logger } from 'pino';
import { termsVersion } from '../../lib/contract';
import { removeControl, writeControl, writePrivateFile } from '../access/control';
import { type Config, readConfig } from '../config';
import { createLog } from '../observe/log';
import type { RunningRelay } from '../open';
import { endOnSignals, isRunByNpm } from './process';
import { type RunningServer, type StartOptions, startServer } from './server';

export interface NodeOptions extends Pick<StartOptions, 'pages'> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether the terms of use are accepted, as `KINORA_ACCEPT_TERMS` says too. */
  readonly acceptTerms: boolean;
  readonly print: (line: string) => void;
}

/**
 * Runs one node as this process, until a signal ends it. Resolves when its relay and its pages are open.
 *
 * @throws Error with sentences, one a line, when it cannot start
 */
export async function runNode(options: NodeOptions): Promise<void> {
  const { pages, print } = options;
  const accepted = options.acceptTerms && { KINORA_ACCEPT_TERMS: termsVersion };
  const config = readConfig({ ...options.environment, ...accepted });
  const log = createLog(config);
  let server: RunningServer | null = null;
  let ending = false;
  endOnSignals({
    log,
    print,
    limitMs: config.KINORA_STOP_SECONDS * 1000 + 5000,
    withParent: config.KINORA_END_WITH_PARENT || isRunByNpm(options.environment),
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
    open: (listening) => openNode(listening, log),
  });
  try {
    const [relay] = await Promise.all([server.relay, server.pages]);
    await writeControl(config, { origin: server.origin });
    print(await describeStart(relay, config));
  } catch (error) {
    // A stop during the start ends the process itself.
    if (ending) return;
    await server.stop();
    throw error;
  }
}

/** A started relay, registered for Next's route handlers. Loaded late: pages do not need it. */
async function openNode(config: Config, log: Logger): Promise<RunningRelay> {
  const [{ openRelay }, { answer }, { setRelay }] = await Promise.all([
    import('../open'),
    import('./answer'),
    import('./route-handler'),
  ]);
  const relay = await openRelay(config, log);
  setRelay(relay, answer);
  relay.start();
  return relay;
}

/**
 * What the terminal shows when the node is up. The very first start shows the keys, here only: they are not
 * written to the log.
 */
async function describeStart(
  relay: RunningRelay,
  config: Pick<Config, 'KINORA_FIRST_START_FILE' | 'KINORA_ACCEPT_TERMS'>,
): Promise<string> {
  const { publicUrl } = relay.files.links;
  const { KINORA_ACCEPT_TERMS: named, KINORA_FIRST_START_FILE: file } = config;
  const accepted = named === termsVersion;
  const first = await relay.keys.firstStart(accepted ? named : null);
  const everyStart = `Kinora runs at ${publicUrl}
  Connect a tab: ${publicUrl}/serve
  Manage keys:   ${publicUrl}/keys, sign in with \`npm run keys -- sign-in\``;
  if (!first) return everyStart;
  if (file) await writePrivateFile(file, JSON.stringify({ publicUrl, ...first }));
  const signIn = `  ${publicUrl}/keys#sign-in=${first.signInToken}\n`;
  if (!accepted) {
    const other = named === '' ? '' : ` KINORA_ACCEPT_TERMS names another version, ${named}.`;
    return `${everyStart}

There is no key yet: one is made when the terms of use are accepted.
Read them at ${publicUrl}/terms (version ${termsVersion}).${other} Then sign in within the hour, once,
and accept them there:
${signIn}
Or start the server once with \`npm start -- --accept-terms\`: it then prints its first keys.
`;
  }
  return `${everyStart}

This is its first start. The keys below are shown only once: keep them.

${first.apiKey && `  API key       ${first.apiKey}\n`}${first.workerToken && `  Worker token  ${first.workerToken}\n`}
Sign in within the hour, once, to manage keys in the browser:
${signIn}`;
}
