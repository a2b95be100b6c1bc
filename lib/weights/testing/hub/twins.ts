import { fileURLToPath } from 'node:url';
import { defaultSafetyChecker } from '../../../contract';
import type { LocalHub } from './server';

const checkerFolder = fileURLToPath(new URL('../../../safety/goldens/timm/', import.meta.url));

/** Puts tiny twins of the files that every model comes with on a hub, under the real names. */
export async function publishTwins({ repositories }: LocalHub): Promise<void> {
  for (const { repository, revision } of defaultSafetyChecker.files) {
    await repositories.putFolder(repository, checkerFolder);
    repositories.pin(repository, revision);
  }
}
