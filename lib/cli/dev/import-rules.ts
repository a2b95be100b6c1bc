/** The imports that lint allows, as Biome has them: made of the table in `lib/README.md`. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** A row of the table: a folder, and what it may import besides itself, or all but what it may not. */
interface FolderRule {
  readonly folder: string;
  readonly isAllBut: boolean;
  readonly names: readonly string[];
}

const notTests = ['!**/*.test.{ts,tsx}', '!**/testing/**', '!**/testing.ts'];

/** The rows of the table under the heading of imports. @throws TypeError for a README without them */
export function importRules(readme: string): readonly FolderRule[] {
  const [, section] = readme.split('| folder | imports |\n| --- | --- |\n');
  if (!section) throw new TypeError('lib/README.md has no table of imports.');
  const rows = section.slice(0, section.indexOf('\n\n')).split('\n');
  const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const rules = rows.flatMap((row) => {
    const [, folders = '', imports = ''] = row.split('|');
    const isAllBut = imports.includes('all but');
    return namesIn(folders).map((folder) => ({ folder, isAllBut, names: namesIn(imports) }));
  });
  // A part of a folder imports what the folder does where its row names the folder.
  const own = (name: string) => rules.find(({ folder }) => folder === name)?.names ?? [];
  return rules.map(({ names, ...rule }) => ({
    ...rule,
    names: names.flatMap((name) => [
      name,
      ...(rule.folder.startsWith(`${name}/`) ? own(name) : []),
    ]),
  }));
}

/** Biome's configuration for the rules. */
export function biomeImports(rules: readonly FolderRule[]): unknown {
  const isPart = (name: string) => rules.some(({ folder }) => name.startsWith(`${folder}/`));
  const folders = [...rules.map(({ folder }) => folder), 'e2e'].filter((name) => !isPart(name));
  const noCycles = (ignoreTypes: boolean) => ({
    rules: { suspicious: { noImportCycles: { level: 'error', options: { ignoreTypes } } } },
  });
  const overrides = [
    { includes: ['lib/contract/**'], linter: noCycles(false) },
    ...rules.map((rule) => {
      const { folder, isAllBut, names } = rule;
      const [isInLib, isCli] = [folder.startsWith('lib/'), folder === 'lib/cli'];
      // How a file comes out of the folder; within lib without the name of lib.
      const depth = folder.split('/').length - (isInLib ? 1 : 0);
      const ways = [0, 1, 2, 3].map((more) => '../'.repeat(depth + more));
      const from = (other: string) =>
        `{${ways.join(',')}}${isInLib ? other.replace(/^lib\//, '') : other}`;
      const isForbidden = (other: string) =>
        other === 'e2e' || (!folder.startsWith(other) && names.includes(other) === isAllBut);
      // The parts of a folder that stand in the table.
      const siblings = rules
        .map((other) => other.folder)
        .filter((other) => isPart(other) && path.dirname(other) === path.dirname(folder))
        .filter((other) => other !== folder && !names.includes(other));
      const patterns = [
        {
          group: [
            ...siblings
              .map((other) => `{../,../../}${path.basename(other)}`)
              .flatMap((other) => [other, `${other}/**`]),
            ...folders.filter(isForbidden).flatMap((other) => [from(other), `${from(other)}/**`]),
            // Single files of folders that it may not import as a whole.
            ...names
              .filter((name) => !folders.includes(name))
              .flatMap((name) => [`!${from(name)}`, `!${from(name)}/**`]),
          ],
          message: `lib/README.md says what ${folder} imports.`,
        },
        ...(folder === 'workers' || (isInLib && !isCli)
          ? [{ group: [':NODE:'], message: 'It runs in a browser.' }]
          : []),
        ...(isInLib && !isCli
          ? [
              {
                group: ['{react,react-dom,next}', '{react,react-dom,next}/**'],
                message: 'Nothing in lib uses React or Next.',
              },
            ]
          : []),
      ];
      const options = { level: 'error', options: { patterns } };
      return {
        includes: [`${folder}/**`, ...notTests],
        linter: { rules: { style: { noRestrictedImports: options } } },
      };
    }),
  ];
  return { linter: noCycles(true), overrides };
}

/** Writes the rules for Biome, which `biome.json` includes. @param root of the checkout */
export async function writeImportRules(root: string): Promise<void> {
  const rules = importRules(await readFile(path.join(root, 'lib/README.md'), 'utf8'));
  const text = `${JSON.stringify(biomeImports(rules), null, 2)}\n`;
  await writeFile(path.join(root, 'biome.imports.json'), text);
}
