import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { BrowserContext } from 'playwright';
import { type ErrorRecord, isLoopback, KinoraError, toKinoraError } from '../contract';
import type { ServeConnect, ServeReport } from '../worker/api';
import { Backoff } from '../worker/transport-error';
import { deviceOf } from './arguments';
import { callPage, HeadlessPage, openPage } from './browser/headless-page';
import { withoutGpu } from './browser/launch';
import { lockProfile, openProfile, profileOrigin } from './browser/profile';
import { Command } from './command';
import { ensureTerms } from './consent';
import { fetchModel } from './fetch-model';
import { kinoraHome } from './paths';
import { librarySession } from './session';
import { parseWorkerOptions, type WorkerOptions, workerHelp } from './worker-options';
import { WorkerReport } from './worker-report';

/** Longest wait before a crashed page, or a server that is away, is tried again, in milliseconds. */
const longestDelayMs = 60_000;

process.exitCode = await new Command().run(async (command) => {
  const options = parseWorkerOptions(process.argv.slice(2), process.env, hostname());
  if (options === 'help') process.stdout.write(workerHelp);
  else await work(command, options);
});

/** Serves until a signal ends it, or the server refuses; starts anew whatever breaks. */
async function work(command: Command, options: WorkerOptions): Promise<void> {
  const home = kinoraHome();
  command.afterwards(await lockProfile(home));
  if (options.device.kernels === 'matrix') {
    command.say('Chromium is started with --enable-unsafe-webgpu, which offers the matrix units.');
  }
  const backoff = new Backoff(1000, longestDelayMs);
  const report = new WorkerReport(command.say);
  const onEvent = (event: ServeReport) => {
    report.take(event);
    if (event.type === 'connected') backoff.reset();
  };
  while (!command.signal.aborted) {
    try {
      await serveInBrowser(command, options, home, onEvent);
    } catch (thrown) {
      if (command.signal.aborted) return;
      const error = toKinoraError(thrown);
      if (isFinal(error)) throw error;
      const waitMs = backoff.next();
      command.say(`${error.message} Starting again in ${Math.ceil(waitMs / 1000)} s.`);
      // A stop ends the pause; the loop looks at the signal.
      await delay(waitMs, undefined, { signal: command.signal }).catch(() => undefined);
    }
  }
}

/** Errors that another start does not mend. */
function isFinal({ code }: KinoraError): boolean {
  return code !== 'INTERNAL' && code !== 'HUB_UNREACHABLE' && code !== 'BUSY';
}

/** One browser, until it ends. */
async function serveInBrowser(
  command: Command,
  options: WorkerOptions,
  home: string,
  onEvent: (event: ServeReport) => void,
): Promise<void> {
  const { server, token, model, name } = options;
  // On this machine the models are those of the other commands, whatever port the server has.
  const origin = isLoopback(server) ? profileOrigin : server;
  const { browser: context, software } = await openProfile(home, server, origin);
  try {
    command.signal.throwIfAborted();
    await untilReachable(command, context, origin, server);
    const page = await HeadlessPage.open(context, origin);
    const session = await librarySession(page, software, home, options.hub);
    await ensureTerms(command, session, options.acceptTerms);
    await fetchModel(command, session, model, options);
    await page.page.close();
    const device = deviceOf(options.device, software);
    if (software) command.say(withoutGpu(device.backend, options.device.backend));
    await serveOnPage(command, context, origin, { token, model, name, device }, onEvent);
  } finally {
    // The browser may have crashed.
    await context.close().catch(() => undefined);
  }
}

/** Waits for a server that is not up yet, for as long as it takes. */
async function untilReachable(
  command: Command,
  context: BrowserContext,
  origin: string,
  server: string,
): Promise<void> {
  const backoff = new Backoff(1000, longestDelayMs);
  for (let said = false; ; said = true) {
    command.signal.throwIfAborted();
    const page = await context.newPage();
    try {
      const response = await page.goto(`${origin}/healthz`, { timeout: 15_000 });
      if (response && response.status() < 500) return;
    } catch {
      // Not up yet, or not there.
    } finally {
      await page.close();
    }
    if (!said) command.say(`waiting: ${server} does not answer`);
    await delay(backoff.next(), undefined, { signal: command.signal });
  }
}

/** The Serve page, until a signal ends it. @throws KinoraError when the page or its connection ended */
async function serveOnPage(
  command: Command,
  context: BrowserContext,
  origin: string,
  options: ServeConnect,
  onEvent: (event: ServeReport) => void,
): Promise<void> {
  let end: (error: ErrorRecord | null) => void = () => {};
  const ended = new Promise<ErrorRecord | null>((resolve) => {
    end = resolve;
  });
  const page = await openPage(context, new URL('/serve', origin).href, (opened) => {
    const die = () => end(new KinoraError('INTERNAL', 'The page has crashed.').toRecord());
    opened.on('crash', die).on('close', die);
    return opened.exposeFunction('kinoraServing', (event: ServeReport) => {
      onEvent(event);
      // Refused is for good; disconnected, unasked, means that the page's worker died.
      if (event.type === 'refused') end({ ...event.error, code: 'REQUEST_INVALID' });
      if (event.type === 'disconnected') end(event.error);
    });
  });
  await callPage(page, 'kinoraServe', 'connect', [options]);
  // The current job is handed back; a page that cannot disconnect any more has ended.
  const leave = () => void callPage(page, 'kinoraServe', 'disconnect', []).catch(() => end(null));
  command.signal.addEventListener('abort', leave);
  if (command.signal.aborted) leave();
  try {
    const error = await ended;
    if (error) throw KinoraError.fromRecord(error);
    if (!command.signal.aborted) throw new KinoraError('INTERNAL', 'The page stopped serving.');
  } finally {
    command.signal.removeEventListener('abort', leave);
  }
}
