import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The project's folder. The compiled server lies in `.next/relay`, which is as deep as this file, so both
 * find it in the same way.
 */
export const projectRoot = path.resolve(fileURLToPath(new URL('../..', import.meta.url)));

/** Where `npm run migrations` puts them. */
export const migrationsFolder = path.join(projectRoot, 'relay', 'store', 'migrations');

/** What `npm run build` makes for the server: its compiled program, and an empty database. */
export const serverBuild = path.join(projectRoot, '.next', 'relay');
