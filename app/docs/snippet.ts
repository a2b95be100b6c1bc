import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** The files of `snippets/`. The page shows them unchanged, and tests run them unchanged. */
export const snippetNames = [
  'quick-start.sh',
  'quick-start-client.mjs',
  'quick-start-fetch.mjs',
  'quick_start.py',
  'verify-webhook.mjs',
  'receive-webhook.mjs',
  'verify-standard.mjs',
  'verify-svix.mjs',
  'verify_webhook.py',
] as const;
export type SnippetName = (typeof snippetNames)[number];

/** The text of a snippet. The page is static, so this runs when the app is built. */
export async function readSnippet(name: SnippetName): Promise<string> {
  return (await readFile(path.join(process.cwd(), 'app/docs/snippets', name), 'utf8')).trimEnd();
}
