import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../paths';
import { biomeImports, importRules } from './import-rules';

const readme = await readFile(path.join(root, 'lib/README.md'), 'utf8');

test('each folder of lib has a row in the table of imports', async () => {
  const entries = await readdir(path.join(root, 'lib'), { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => `lib/${name}`);
  const rows = importRules(readme).map(({ folder }) => folder);
  expect(rows).toEqual(expect.arrayContaining([...folders, 'app', 'relay', 'workers']));
});

test('what a row does not name is forbidden', () => {
  const rules = importRules(`| folder | imports |
| --- | --- |
| \`lib/a\` | |
| \`lib/b\` | \`lib/a\`, \`lib/c/d\` |
| \`lib/c\` | all but \`lib/b\` |

`);
  const text = JSON.stringify(biomeImports(rules));
  const groups = [...text.matchAll(/"group":\[([^\]]*)\],"message":"lib/g)].map(
    ([, group]) => group,
  );
  expect(groups).toHaveLength(3);
  expect(groups[0]).toContain('{../,../../,../../../,../../../../}b/**');
  expect(groups[0]).toContain('}c"');
  expect(groups[1]).not.toContain('}a"');
  expect(groups[1]).toContain('}c/**",');
  expect(groups[1]).toContain('!{../,../../,../../../,../../../../}c/d/**');
  expect(groups[2]).toContain('}b"');
  expect(groups[2]).not.toContain('}a"');
});
