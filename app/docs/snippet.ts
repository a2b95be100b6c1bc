import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** Files that the page shows as they are, and that tests run as they are. */
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

/** Text of a snippet, read while the page is built. */
export async function readSnippet(name: SnippetName): Promise<string> {
  return (await readFile(path.join(process.cwd(), 'app/docs/snippets', name), 'utf8')).trimEnd();
}
