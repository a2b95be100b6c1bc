import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { settings } from './schema';
import type { Database } from './store';

/**
 * A secret of the installation: made by the first node, read by all.
 *
 * @returns 32 random bytes, base64url
 */
export async function installationSecret(
  db: Database,
  name: 'link_secret' | 'signing_secret',
): Promise<string> {
  const value = randomBytes(32).toString('base64url');
  await db.insert(settings).values({ name, value }).onConflictDoNothing();
  const [row] = await db.select().from(settings).where(eq(settings.name, name));
  if (!row) throw new Error('A secret was deleted while it was being read.');
  return row.value;
}
