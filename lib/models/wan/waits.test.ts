import { describe } from 'vitest';
import { CountingBackend } from '../../gpu';
import { diskFolder, goldens } from '../../weights/testing/files';
import { usualChoice } from './model-memory';
import { tinyFolder } from './testing/model';
import { waitsTests } from './testing/waits';

describe.each(['runtime', 'exact', 'fast'] as const)('waits that are counted, %s', (mode) => {
  const backend = new CountingBackend(usualChoice(mode));
  waitsTests(mode, () => backend, { goldens: diskFolder(goldens), model: tinyFolder });
});
