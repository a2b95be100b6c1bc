import { timeParts } from '../../lib/contract';
import { language, t } from '.';
import type { Language } from './catalogue';

/** A time such as `42 s` or `3 min 05 s` in the language of the page; with one decimal below ten seconds if `precise`. */
export function formatTime(inSeconds: number, precise = false): string {
  const parts = timeParts(inSeconds, precise);
  switch (parts[0]) {
    case 's':
      return t('common.seconds', { seconds: parts[1] });
    case 'min':
      return t('common.minutes', { minutes: parts[1], seconds: parts[2] });
    case 'h':
      return t('common.hours', { hours: parts[1], minutes: parts[2] });
  }
}

/** The last formatter of each options object: a formatter takes longer to make than to use. */
const dateFormats = new WeakMap<
  Intl.DateTimeFormatOptions,
  { readonly locale: Language; readonly format: Intl.DateTimeFormat }
>();

/** A date and time in the language of the page. */
export function formatDate(iso: string, options: Intl.DateTimeFormatOptions): string {
  const locale = language();
  let cached = dateFormats.get(options);
  if (cached?.locale !== locale) {
    const format = new Intl.DateTimeFormat(locale === 'en' ? undefined : locale, options);
    cached = { locale, format };
    dateFormats.set(options, cached);
  }
  return cached.format.format(new Date(iso));
}

/** `a, b, or c` in the language of the page. */
export function listOf(entries: readonly string[], type: Intl.ListFormatType): string {
  return new Intl.ListFormat(language(), { type }).format(entries);
}
