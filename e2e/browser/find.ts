import { existsSync } from 'node:fs';

/** Flags under which Chromium offers WebGPU on a machine without a GPU, and stays quiet. */
export const chromiumFlags = [
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
] as const;

/** Path of a browser. */
export function findBrowser(): string {
  for (const path of ['/usr/bin/google-chrome', '/usr/bin/chromium']) {
    if (existsSync(path)) return path;
  }
  throw new Error('no browser');
}
