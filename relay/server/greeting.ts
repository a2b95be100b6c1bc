import { rename, rm, writeFile } from 'node:fs/promises';
import type { Config } from '../config';
import type { RunningRelay } from '../open';

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
