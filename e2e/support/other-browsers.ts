import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'undici';
import { installPackages } from '../../lib/cli/browser/find';
import { freePort, outputOf, signalTree, stopTree } from '../../lib/cli/process';

/** A browser that Playwright does not drive. Its profile is new, and lasts as long as it runs. */
export interface OtherBrowser {
  /** Folder of its downloads. */
  readonly downloads: string;
  /** Opens an address and waits until the page is loaded. */
  goto(url: string): Promise<void>;
  /**
   * Runs a function in the page and waits for what it resolves with.
   *
   * @param run is sent as text, so it can use nothing but its argument; its value must be JSON
   */
  evaluate<T, A>(run: (value: A) => T | Promise<T>, value: A): Promise<T>;
  /** Lines that its pages have written to the console so far. */
  log(): string;
  close(): Promise<void>;
}

/** How a browser is found, and started with a folder for all that it writes. */
export interface OtherBrowserKind {
  readonly name: string;
  /** Why it cannot be run on this machine; null where it can. Debian's packages are installed where that is allowed. */
  missing(): string | null;
  start(folder: string): Promise<OtherBrowser>;
}

const firefoxProgram = '/usr/bin/firefox-esr';

/** Debian's Firefox, over WebDriver BiDi, which it speaks itself. */
export const firefox: OtherBrowserKind = {
  name: 'Firefox',
  missing() {
    if (existsSync(firefoxProgram) || installPackages(['firefox-esr'])) return null;
    return `${firefoxProgram} is not there and could not be installed with apt-get.`;
  },
  async start(folder) {
    const profile = path.join(folder, 'profile');
    const downloads = path.join(folder, 'downloads');
    await mkdir(profile, { recursive: true });
    const preferences = {
      'browser.download.folderList': 2,
      'browser.download.dir': downloads,
      'intl.accept_languages': 'en-GB',
    };
    const lines = Object.entries(preferences).map(
      ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
    );
    await writeFile(path.join(profile, 'user.js'), lines.join('\n'));
    const args = [
      '--headless',
      '--no-remote',
      '--remote-debugging-port',
      '0',
      '--profile',
      profile,
    ];
    const child = start(firefoxProgram, args);
    const said = outputOf(child.stdout, child.stderr);
    const address = await waitFor(child, said, async () => {
      return /WebDriver BiDi listening on (ws:\S+)/.exec(said())?.[1];
    });
    const connection = await connect(`${address}/session`);
    const send = (method: string, params: object) =>
      connection.call((id) => ({ id, method, params }));
    await send('session.new', { capabilities: {} });
    await send('session.subscribe', { events: ['log.entryAdded'] });
    const { contexts } = (await send('browsingContext.getTree', {})) as {
      contexts: { context: string }[];
    };
    const context = contexts[0]?.context;
    // A page that a program drives registers no service worker.
    await send('script.addPreloadScript', {
      functionDeclaration: `() => Object.defineProperty(navigator, 'webdriver', { value: false })`,
    });
    return {
      downloads,
      async goto(url) {
        await send('browsingContext.navigate', { context, url, wait: 'complete' });
      },
      async evaluate<T, A>(run: (value: A) => T | Promise<T>, value: A) {
        const answer = (await send('script.evaluate', {
          expression: asJson(run, value),
          target: { context },
          awaitPromise: true,
        })) as { result?: { value?: string }; exceptionDetails?: { text: string } };
        if (answer.exceptionDetails) throw new Error(answer.exceptionDetails.text);
        return parsed<T>(answer.result?.value);
      },
      log: connection.log,
      async close() {
        connection.close();
        await stopTree(child);
      },
    };
  },
};

const miniBrowser = `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/webkit2gtk-4.1/MiniBrowser`;

/** Off by default in WebKitGTK, on in Safari. */
const storageFeatures = [
  'AccessHandle',
  'FileSystem',
  'FileSystemWritableStream',
  'StorageAPI',
  'StorageAPIEstimate',
];

/**
 * WebKitGTK's MiniBrowser with the private file system switched on, over the protocol of its inspector: what
 * WebDriver starts has a private window, which has no such storage.
 */
export const webKit: OtherBrowserKind = {
  name: 'WebKitGTK',
  missing() {
    if (existsSync(miniBrowser) && existsSync('/usr/bin/Xvfb')) return null;
    // GStreamer's libav decodes H.264.
    if (installPackages(['libwebkit2gtk-4.1-0', 'gstreamer1.0-libav', 'xvfb'])) {
      if (existsSync(miniBrowser)) return null;
    }
    return `${miniBrowser} and Xvfb are not there and could not be installed with apt-get.`;
  },
  async start(folder) {
    const downloads = path.join(folder, 'downloads');
    await mkdir(downloads, { recursive: true });
    await mkdir(path.join(folder, 'config'));
    await writeFile(
      path.join(folder, 'config', 'user-dirs.dirs'),
      `XDG_DOWNLOAD_DIR="${downloads}"\n`,
    );
    const screen = start('/usr/bin/Xvfb', ['-displayfd', '1', '-nolisten', 'tcp']);
    const display = outputOf(screen.stdout);
    const number = await waitFor(screen, display, async () => /(\d+)\n/.exec(display())?.[1]);
    const host = `127.0.0.1:${await freePort()}`;
    const child = start(
      miniBrowser,
      ['--enable-developer-extras=true', `--features=${storageFeatures.join()}`, 'about:blank'],
      {
        DISPLAY: `:${number}`,
        HOME: folder,
        XDG_CONFIG_HOME: path.join(folder, 'config'),
        XDG_DATA_HOME: path.join(folder, 'data'),
        XDG_CACHE_HOME: path.join(folder, 'cache'),
        LANG: 'en_GB.UTF-8',
        WEBKIT_INSPECTOR_HTTP_SERVER: host,
      },
    );
    const socket = await waitFor(child, outputOf(child.stdout, child.stderr), async () => {
      const list = await fetch(`http://${host}/`).then((page) => page.text(), String);
      return /\/socket\/\d+\/\d+\/WebPage/.exec(list)?.[0];
    });
    const connection = await connect(`ws://${host}${socket}`);
    const send = async (method: string, params: object) => {
      const target = await connection.target();
      return connection.call((id) => ({
        id: -id,
        method: 'Target.sendMessageToTarget',
        params: { targetId: target, message: JSON.stringify({ id, method, params }) },
      }));
    };
    const evaluate = async (expression: string) => {
      const { result } = (await send('Runtime.evaluate', { expression })) as Evaluated;
      const awaited = (await send('Runtime.awaitPromise', {
        promiseObjectId: result.objectId,
        returnByValue: true,
      })) as Evaluated;
      if (awaited.wasThrown) throw new Error(awaited.result.description ?? 'thrown in the page');
      return awaited.result.value;
    };
    return {
      downloads,
      async goto(url) {
        // A page may ask whether to leave it, and no person is there to answer.
        await evaluate(
          asJson(() => {
            Object.assign(BeforeUnloadEvent.prototype, { preventDefault() {} });
          }, null),
        );
        await send('Page.navigate', { url }).catch(() => {});
        const there = asJson((wanted: string) => {
          return document.readyState === 'complete' && location.href.startsWith(wanted);
        }, url);
        await delay(500);
        await waitFor(child, String, async () => {
          return (await evaluate(there).catch(() => 'false')) === 'true' || undefined;
        });
        await send('Console.enable', {});
        // Its media library crashes the page where the first to use it is an encoder in a worker.
        await evaluate(
          asJson(() => document.createElement('video').canPlayType('video/mp4'), null),
        );
      },
      async evaluate<T, A>(run: (value: A) => T | Promise<T>, value: A) {
        return parsed<T>(await evaluate(asJson(run, value)));
      },
      log: connection.log,
      async close() {
        connection.close();
        await stopTree(child);
        await stopTree(screen);
      },
    };
  },
};

interface Evaluated {
  readonly wasThrown?: boolean;
  readonly result: {
    readonly objectId?: string;
    readonly value?: string;
    readonly description?: string;
  };
}

/** The text of an expression that runs the function, and resolves with its value as JSON. */
function asJson<T, A>(run: (value: A) => T, value: A): string {
  return `(async () => JSON.stringify(await (${run})(${JSON.stringify(value)})))()`;
}

function parsed<T>(json: string | undefined): T {
  return (json === undefined ? undefined : JSON.parse(json)) as T;
}

function start(program: string, args: readonly string[], env = {}): ChildProcess {
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  process.once('exit', () => signalTree(child, 'SIGKILL'));
  return child;
}

/** Asks until there is an answer, for as long as the program runs, and three minutes at most. */
async function waitFor<T>(
  child: ChildProcess,
  said: () => string,
  ask: () => Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + 180_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (child.exitCode !== null || performance.now() > deadline) {
      throw new Error(`${child.spawnfile} does not answer: ${said()}`);
    }
    await delay(100);
  }
}

async function connect(url: string) {
  const socket = new WebSocket(url);
  const waiting = new Map<number, (message: Answer) => void>();
  let target: string | undefined;
  let count = 0;
  const lines: string[] = [];
  socket.addEventListener('message', ({ data }) => receive(JSON.parse(String(data))));
  await once(socket, 'open');

  function receive(message: Answer): void {
    const { method, params } = message;
    if (method === 'Target.targetCreated' && !params?.targetInfo?.isProvisional) {
      if (params?.targetInfo?.type === 'page') target = params.targetInfo.targetId;
    } else if (method === 'Target.didCommitProvisionalTarget') {
      target = params?.newTargetId;
      // The page has another process now, and the one before answers no more.
      for (const answer of waiting.values()) answer({ error: 'the page was replaced' });
    } else if (method === 'Target.dispatchMessageFromTarget') {
      if (typeof params?.message === 'string') receive(JSON.parse(params.message));
    } else if (method === 'log.entryAdded') {
      lines.push(`${params?.level}: ${params?.text}`);
    } else if (method === 'Console.messageAdded' && typeof params?.message === 'object') {
      lines.push(`${params.message.level}: ${params.message.text}`);
    } else if (message.id !== undefined) {
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  }
  return {
    close: () => socket.close(),
    log: () => lines.join('\n'),
    async target(): Promise<string> {
      while (target === undefined) await delay(20);
      return target;
    },
    async call(command: (id: number) => object): Promise<unknown> {
      const id = ++count;
      const answer = new Promise<Answer>((resolve) => waiting.set(id, resolve));
      socket.send(JSON.stringify(command(id)));
      const late = delay(180_000, { error: 'no answer within three minutes' } as Answer, {
        ref: false,
      });
      const { result, error, message } = await Promise.race([answer, late]);
      if (error) throw new Error(`${JSON.stringify(error)} ${message ?? ''}`);
      return result;
    },
  };
}

/** Fields that both protocols send. */
interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: unknown;
  /** Of an error of WebDriver BiDi. */
  readonly message?: string;
  readonly method?: string;
  readonly params?: {
    readonly targetInfo?: { targetId: string; type: string; isProvisional?: boolean };
    readonly newTargetId?: string;
    readonly message?: string | ConsoleMessage;
  } & Partial<ConsoleMessage>;
}

interface ConsoleMessage {
  readonly level: string;
  readonly text: string | null;
}
