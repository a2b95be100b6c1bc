import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The project's folder. The compiled server lies in `.next/relay`, which is as deep as this file, so both
 * find it in the same way.
 */
export const projectRoot = path.resolve(fileURLToPath(new URL('../..', import.meta.url)));

/** Folder of the migrations that `npm run migrations` writes. */
export const migrationsFolder = path.join(projectRoot, 'relay', 'store', 'migrations');

/** Folder of the compiled server and of an empty database, which `npm run build` makes. */
export const serverBuild = path.join(projectRoot, '.next', 'relay');
