import { readFileSync } from 'node:fs';
import { globSync } from 'tinyglobby';
import { parseAst } from 'vite';
import { expect, test } from 'vitest';
import { messages } from './en';

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Keys of the catalogue. */
const key = /^[a-z]+(\.\w+)+$/;
/** Attributes that a person reads or hears. */
const readAloud = /^(aria-label|aria-description|title|placeholder|alt|label|hint|text)$/;
/** Sentences, and single words with a capital. */
const prose = /[a-z]{2,}[,;:]? [a-z’]+|^[A-Z][a-z]+[.:]?$/;
/** Words that are names in every language, keys of the keyboard, and reasons of a record. */
const names =
  /^(\(.*\)|.* · Kinora|light dark|time limit|serving worker|Suspending|Android|Chrome|Edge|Firefox|Linux|Safari|Windows|WebGPU|Kinora|Enter|Escape|Home|End|Tab|Control|Shift|Arrow\w+|Delete|Backspace|Range|Error)$/;

const sources = globSync('app/**/*.{ts,tsx}', {
  ignore: ['**/*.test.*', '**/testing/**', '**/testing.ts', 'app/texts/**'],
}).sort();

/** Files with English texts that are not for the pages' readers, or for readers of English only. */
const exempt = [
  /^app\/(api|docs|headless)\//,
  /^app\/layout\.tsx$/,
  // Prompts, which are English for the model.
  /^app\/studio\/form\/(examples|request-code|phrases)\.ts$/,
  // Scripts as texts.
  /^app\/shared\/(expected-image|install-offer|theme-script)\.ts$/,
];
const files = sources.filter((file) => !exempt.some((pattern) => pattern.test(file)));

test.each(files)('%s has its texts in the catalogue', (file) => {
  const program = parseAst(readFileSync(file, 'utf8'), {
    lang: file.endsWith('x') ? 'tsx' : 'ts',
  }) as unknown as Node;
  expect(textsIn(program)).toEqual([]);
});

/** Areas that every page loads. */
const everywhere = new Set(['common', 'shared', 'names']);

test.each(sources)('%s imports the English texts that it uses', (file) => {
  const source = readFileSync(file, 'utf8');
  const used = [...source.matchAll(/['"`]([a-z]+)\.[a-z]/gi)].map(([, area = '']) => area);
  const loaded = [...source.matchAll(/^import '.*\/texts\/en\/([a-z]+)';$/gm)].map(
    ([, area = '']) => area,
  );
  const areas = Object.keys(messages).filter((area) => !everywhere.has(area));
  expect(loaded).toEqual(areas.filter((area) => used.includes(area)).sort());
});

/** Texts for people in a syntax tree. */
function textsIn(node: Node, parent?: Node): string[] {
  const { type } = node;
  if (/^(Import|Export\w*All|TS)/.test(type) || 'directive' in node) return [];
  if (type === 'JSXText')
    return /\p{L}{2}/u.test(String(node.value)) ? [String(node.value).trim()] : [];
  if (type === 'JSXAttribute') {
    const name = String((node.name as Node).name);
    const value = node.value as Node | null;
    if (value?.type !== 'Literal') return value ? textsIn(value, node) : [];
    return readAloud.test(name) &&
      !key.test(String(value.value)) &&
      /\p{L}{2}/u.test(String(value.value))
      ? [`${name}: ${String(value.value)}`]
      : [];
  }
  if (type === 'Property' || type === 'NewExpression') {
    // What is thrown has its sentence in lib/contract/errors.ts; keys of objects are no texts.
    if (type === 'NewExpression') return [];
    return textsIn(node.value as Node, node);
  }
  if (type === 'Literal' && typeof node.value === 'string') {
    const text = node.value;
    return prose.test(text) &&
      !key.test(text) &&
      !names.test(text) &&
      parent?.type !== 'MemberExpression'
      ? [text]
      : [];
  }
  if (type === 'TemplateElement') {
    const text = String((node.value as { cooked: string }).cooked);
    return /[a-z]{2,} [a-z]{2,}/.test(text) ? [text] : [];
  }
  return Object.values(node).flatMap((child) =>
    (Array.isArray(child) ? child : [child]).flatMap((one: unknown) =>
      typeof one === 'object' && one !== null && 'type' in one ? textsIn(one as Node, node) : [],
    ),
  );
}
