import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KinoraError } from '../../contract';
import { temporaryFolder } from '../../contract/testing/folder';
import { browserCandidates, findBrowser } from './find';

const folder = temporaryFolder();
beforeEach(() => void vi.stubEnv('KINORA_BROWSER', ''));
afterEach(() => void vi.unstubAllEnvs());

async function program(name: string, script: string): Promise<string> {
  const file = path.join(folder(), name);
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
  return file;
}

describe('where a browser is looked for', () => {
  it('is PATH first, then the usual folders, on Linux', () => {
    const places = browserCandidates('linux', { PATH: '/opt/own' });
    expect(places[0]).toBe('/opt/own/google-chrome');
    expect(places).toContain('/usr/bin/chromium');
    expect(places).toContain('/opt/google/chrome/chrome');
    expect(new Set(places).size).toBe(places.length);
  });

  it('is the application folders on macOS', () => {
    const places = browserCandidates('darwin', { PATH: '', HOME: '/Users/a' });
    expect(places).toContain('/Applications/Google Chrome.app/Contents/MacOS/Google Chrome');
    expect(places).toContain('/Users/a/Applications/Chromium.app/Contents/MacOS/Chromium');
  });

  it('is the program folders on Windows', () => {
    const places = browserCandidates('win32', {
      PATH: 'C:\\tools;D:\\bin',
      PROGRAMFILES: 'C:\\Program Files',
      LOCALAPPDATA: 'C:\\Users\\a\\AppData\\Local',
    });
    expect(places).toContain('D:\\bin\\chromium.exe');
    expect(places).toContain('C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe');
    expect(places).toContain(
      'C:\\Users\\a\\AppData\\Local\\Google\\Chrome\\Application\\chrome.exe',
    );
  });
});

describe.skipIf(process.platform !== 'linux')('the browser that is found', () => {
  it('is the one that KINORA_BROWSER names', async () => {
    const chosen = await program('mine', 'exit 0');
    vi.stubEnv('KINORA_BROWSER', chosen);
    expect(findBrowser()).toBe(chosen);
  });

  it('is none when KINORA_BROWSER names nothing: that is said, not passed over', () => {
    vi.stubEnv('KINORA_BROWSER', path.join(folder(), 'none'));
    expect(findBrowser).toThrow(KinoraError);
    expect(findBrowser).toThrow(/KINORA_BROWSER/);
  });

  it('has to start: a script that only prints how to install one is passed over', async () => {
    const script = await program('chromium-browser', 'echo "install the snap" >&2; exit 1');
    const working = await program('microsoft-edge', 'echo "Edge 150"');
    vi.stubEnv('PATH', folder());
    const found = findBrowser();
    // Where the machine has a Chrome or Chromium of its own, that comes before Edge.
    expect(found).not.toBe(script);
    if (!found?.startsWith('/usr/')) expect(found).toBe(working);
  });

  it('is the first in PATH', async () => {
    const first = await program('google-chrome', 'echo "Chrome 150"');
    vi.stubEnv('PATH', folder());
    expect(findBrowser()).toBe(first);
  });
});
