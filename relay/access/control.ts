import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Config } from '../config';

/**
 * The control file: a command of the same user on the same machine finds in it the running server and a token.
 * It must not open the embedded database itself while a server has it (store/README.md).
 */
const controlSchema = z.object({
  /** Address at which the server listens, such as `http://127.0.0.1:3000`. */
  origin: z.url(),
  /** Origin of links for people. */
  publicUrl: z.url(),
  /** Accepted as a bearer token with every scope, for as long as the process lives. */
  token: z.string().min(1),
  pid: z.int().positive(),
});
export type Control = z.output<typeof controlSchema>;

type DataFolder = Pick<Config, 'KINORA_DATA'>;

let ownToken: string | null = null;

export function processControlToken(): string {
  ownToken ??= `kc_${randomBytes(32).toString('base64url')}`;
  return ownToken;
}

/** Writes the control file, readable only by this user, once the server listens. */
export async function writeControl(
  config: DataFolder & Pick<Config, 'KINORA_PUBLIC_URL'>,
  { origin }: { readonly origin: string },
): Promise<void> {
  const token = processControlToken();
  const publicUrl = config.KINORA_PUBLIC_URL ?? origin;
  const control: Control = { origin, publicUrl, token, pid: process.pid };
  await mkdir(config.KINORA_DATA, { recursive: true });
  await writePrivateFile(fileOf(config), JSON.stringify(control));
}

/** Writes a file whole or not at all, readable by this user alone, also where there is one already. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await rm(draft, { force: true });
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
}

/** The running server's control file; null where there is none, or its process has ended. */
export async function readControl(config: DataFolder): Promise<Control | null> {
  const control = await parseFile(fileOf(config));
  return control && isAlive(control.pid) ? control : null;
}

/** Removes the control file, unless it belongs to another process now. */
export async function removeControl(config: DataFolder): Promise<void> {
  const control = await parseFile(fileOf(config));
  if (control?.pid === process.pid) await rm(fileOf(config), { force: true });
}

function fileOf(config: DataFolder): string {
  return path.join(config.KINORA_DATA, 'control.json');
}

async function parseFile(file: string): Promise<Control | null> {
  try {
    return controlSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    // Absent, of another user, or invalid: there is no server to call.
    return null;
  }
}

/** Whether a process of this number runs; one of another user may not be signalled. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
