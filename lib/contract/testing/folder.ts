import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** An empty folder for each test of a file, which is removed after it. @returns gives its path */
export function temporaryFolder(): () => string {
  let folder = '';
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'kinora-test-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  return () => folder;
}
