import { escapeUTF8 } from 'entities';

/** Markup that is sent as it is. Only {@link html} makes it. */
export class Markup {
  constructor(readonly text: string) {}
}

type Value = string | number | Markup | readonly Markup[] | null;

/** A template whose values are escaped, in text and in quoted attributes; null is nothing. */
export function html(parts: TemplateStringsArray, ...values: readonly Value[]): Markup {
  const texts = values.map((value) => {
    if (value === null) return '';
    if (value instanceof Markup) return value.text;
    if (typeof value === 'object') return value.map(({ text }) => text).join('');
    return escapeUTF8(String(value));
  });
  return new Markup(String.raw({ raw: parts }, ...texts));
}
