import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { chromium } from 'playwright';
import { KinoraError } from '../../contract';

/** Program names under which Chrome, Chromium and Edge stand in `PATH`. */
const programs = [
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  'chromium',
  'chromium-browser',
  'microsoft-edge',
  'microsoft-edge-stable',
  'msedge',
];

type Environment = Readonly<Record<string, string | undefined>>;

/** Places of the browser by the installers of each system. */
function usualPaths(platform: NodeJS.Platform, env: Environment): string[] {
  if (platform === 'darwin') {
    const apps = [
      'Google Chrome.app/Contents/MacOS/Google Chrome',
      'Chromium.app/Contents/MacOS/Chromium',
      'Microsoft Edge.app/Contents/MacOS/Microsoft Edge',
    ];
    const roots = ['/Applications', env.HOME && path.posix.join(env.HOME, 'Applications')];
    return roots.flatMap((root) => (root ? apps.map((app) => path.posix.join(root, app)) : []));
  }
  if (platform === 'win32') {
    const files = [
      'Google\\Chrome\\Application\\chrome.exe',
      'Chromium\\Application\\chrome.exe',
      'Microsoft\\Edge\\Application\\msedge.exe',
    ];
    const roots = [env.PROGRAMFILES, env['PROGRAMFILES(X86)'], env.LOCALAPPDATA];
    return roots.flatMap((root) => (root ? files.map((file) => path.win32.join(root, file)) : []));
  }
  return ['/opt/google/chrome/chrome', '/opt/microsoft/msedge/msedge', '/snap/bin/chromium'];
}

/** Every place to look at, the likeliest first. */
export function browserCandidates(
  platform: NodeJS.Platform = process.platform,
  env: Environment = process.env,
): string[] {
  const { delimiter, join } = platform === 'win32' ? path.win32 : path.posix;
  const suffix = platform === 'win32' ? '.exe' : '';
  // cron and CI often run with a PATH that leaves these two out.
  const usual = platform === 'win32' ? [] : ['/usr/bin', '/usr/local/bin'];
  const folders = [...(env.PATH ?? '').split(delimiter).filter(Boolean), ...usual];
  const inPath = programs.flatMap((name) => folders.map((folder) => join(folder, name + suffix)));
  return [...new Set([...inPath, ...usualPaths(platform, env)])];
}

/**
 * Path of a browser on this machine: `KINORA_BROWSER`, else Chrome, Chromium or Edge, else the
 * Chromium that Playwright keeps.
 *
 * @returns undefined where there is none; {@link ensureBrowser} installs one
 * @throws KinoraError `BROWSER_MISSING` when `KINORA_BROWSER` names no file
 */
export function findBrowser(): string | undefined {
  const chosen = process.env.KINORA_BROWSER;
  if (chosen) {
    if (existsSync(chosen)) return chosen;
    throw new KinoraError('BROWSER_MISSING', `KINORA_BROWSER is ${chosen}, which does not exist.`, {
      remedy: 'Set KINORA_BROWSER to the path of Chrome or Chromium, or unset it.',
    });
  }
  return [...browserCandidates(), chromium.executablePath()].find(starts);
}

/**
 * Whether the file is there and is a browser. Ubuntu's `chromium-browser` may be a script that only tells to install
 * the snap, so that one has to answer `--version`. The others are not asked: it takes 0.1 s of each command.
 */
function starts(file: string): boolean {
  if (!file || !existsSync(file)) return false;
  if (path.basename(file) !== 'chromium-browser') return true;
  return spawnSync(file, ['--version'], { stdio: 'ignore', timeout: 20_000 }).status === 0;
}

/**
 * Path of a browser, installing one where none is found: Debian's `chromium` where `apt-get` may
 * be used, else Playwright's own. Says on stderr what it installs; installers stay quiet unless
 * they fail.
 *
 * @throws KinoraError `BROWSER_MISSING`
 */
export async function ensureBrowser(): Promise<string> {
  const found = findBrowser();
  if (found) return found;
  installPackages(['chromium']);
  const executable = findBrowser() ?? installWithPlaywright();
  if (executable) return executable;
  throw new KinoraError('BROWSER_MISSING');
}

/**
 * Installs a browser as Debian's packages where `apt-get` may be used, and says so on stderr.
 *
 * @returns whether they are there now
 */
export function installPackages(packages: readonly string[]): boolean {
  const prefix = rootPrefix();
  if (process.platform !== 'linux' || !onPath('apt-get') || prefix === undefined) return false;
  const apt = [...prefix, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get'];
  say(`No browser found: installing the packages ${packages.join(', ')} with apt-get …`);
  quietly([...apt, 'update']);
  return quietly([...apt, 'install', '-y', '--no-install-recommends', ...packages]);
}

function installWithPlaywright(): string | undefined {
  const cli = path.join(
    path.dirname(createRequire(import.meta.url).resolve('playwright/package.json')),
    'cli.js',
  );
  say("No browser found: installing Playwright's own Chromium …");
  // Its system libraries come from apt-get too, which needs the same rights.
  const withLibraries = process.platform === 'linux' && rootPrefix() !== undefined;
  const install = [process.execPath, cli, 'install', 'chromium'];
  if (!(withLibraries && quietly([...install, '--with-deps']))) quietly(install);
  return findBrowser();
}

/** The prefix that runs a command as root; undefined where there is none. */
function rootPrefix(): string[] | undefined {
  if (process.getuid?.() === 0) return [];
  const passwordless =
    onPath('sudo') && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0;
  return passwordless ? ['sudo', '-n'] : undefined;
}

function onPath(program: string): boolean {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return folders.some((folder) => folder && existsSync(path.join(folder, program)));
}

/** Runs a command; prints what it said only when it fails. */
function quietly([program = '', ...args]: readonly string[]): boolean {
  const run = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  if (run.status === 0) return true;
  const said = [run.error?.message, run.stdout, run.stderr].filter(Boolean).join('\n').trimEnd();
  // Installers repeat themselves; the end says why.
  const end = said.split('\n').slice(-15).join('\n');
  say(`${[program, ...args].join(' ')} failed:\n${end}`);
  return false;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
