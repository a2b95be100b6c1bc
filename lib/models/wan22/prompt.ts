import { decodeHTML } from 'entities';

/** What Python's `str` calls white space; JavaScript's `\s` differs by a few characters. */
const whitespace =
  '\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const runsOfWhitespace = new RegExp(`[${whitespace}]+`, 'g');
const outerSpace = /^ | $/g;

/**
 * Cleans a prompt as diffusers' `prompt_clean` does: HTML entities are resolved twice, every run of
 * white space becomes one space, none stays at the ends. Case is kept.
 *
 * The reference also repairs text that was decoded with the wrong character set (ftfy). That is left
 * out: what people type into a page is intact.
 */
export function cleanPrompt(text: string): string {
  return decodeHTML(decodeHTML(text)).replace(runsOfWhitespace, ' ').replace(outerSpace, '');
}
