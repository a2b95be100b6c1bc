/**
 * The last step of `npm run build`: compiles the server into one program, and makes the empty database
 * that a first start copies. Both go to `.next/relay`.
 */
import { mkdtemp, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { openStore } from '../../../relay/store';
import { serverBuild } from '../../../relay/store/folders';
import { chmodAll, preparedDatabase } from '../../../relay/store/pglite';
import { compileServer } from './compile-server';

await rm(serverBuild, { recursive: true, force: true });
await compileServer('relay/main.ts', serverBuild);

const draft = await mkdtemp(path.join(serverBuild, 'draft-'));
const store = await openStore({ KINORA_DATA: draft });
await store.close();
const folder = path.join(draft, 'db');
// The server may run as another user than the build.
await chmodAll(folder, 0o755);
await rename(folder, preparedDatabase());
await rm(draft, { recursive: true });
