import {
  adultTerms,
  agedThings,
  childTerms,
  chinese,
  durationAfter,
  durationBefore,
  harmlessPhrases,
  nudityTerms,
  numbersBelow18,
  sexualTerms,
} from './prompt-refusal-words';

/** A pattern for whole words of any of these lists; a space of a term is a space of {@link normalized}. */
function words(lists: readonly string[], han: readonly string[] = []): string {
  const whole = `(?<![\\p{L}\\p{N}])(?:${lists.join('|')})(?![\\p{L}\\p{N}])`;
  return han.length === 0 ? whole : `(?:${whole}|${han.join('|')})`;
}

/** One spelling for all: lower case, no invisible characters, hyphens and white space as one space. */
function normalized(prompt: string): string {
  return prompt
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\p{Cf}/gu, '')
    .replace(/[’ʼ`]/g, "'")
    .replace(/[\s\p{Pd}_]+/gu, ' ')
    .replace(harmless, ' ');
}

const harmless = new RegExp(words(harmlessPhrases), 'gu');
const sexual = new RegExp(words(sexualTerms, chinese.sexual), 'u');

// One and zero are left out as words ("one year old" is "un an", an article in five languages).
const numberWords = numbersBelow18.slice(2).join('|');
const number = `(?<![\\p{L}\\p{N}.,])(?:(?:1[0-7]|[1-9])(?![\\p{N}.,]\\p{N})|(?:${numberWords})(?= |jährig))`;
const thing = words(agedThings, chinese.agedThings);
const notAThing = `(?<!${thing}(?: (?:is|was|that is|of|de|di))?,? )`;
/** Ages below 18: "12 year old", "aged 12", "zwölfjährig", "12 Jahre alt", "12 ans", "12 años", "12岁". */
const ages = [
  `${notAThing}${number} ?(?:years?|yrs?) (?:old|of age)(?! ?(?:single malt )?${thing})`,
  `${notAThing}${number} ?(?:yo|y/o|y\\.o\\.?)(?![\\p{L}\\p{N}])(?! ?${thing})`,
  `(?<![\\p{L}\\p{N}])(?:girls?|boys?),? (?:of )?${number}(?= years(?! of (?!age))|,|\\.(?!\\p{N})|$)`,
  `(?<![\\p{L}\\p{N}])(?:aged?|age of|im alter von) ${number}(?! ?(?:years? in|months?|weeks?|%))`,
  `${number} ?jährige?[rnsm]?(?![\\p{L}])(?! ${thing})`,
  `${notAThing}${number} ?jahre alte?[rnsm]?(?![\\p{L}])(?! ${thing})`,
  `(?<!(?:${durationBefore}) )${notAThing}${number} ?(?:ans|años|añitos|anni|anos|aninhos)(?![\\p{L}])(?! (?:${durationAfter}))`,
  `(?:(?<![\\p{N}.])(?:1[0-7]|[1-9])|(?<![一二三四五六七八九十])(?:十[一二三四五六七]?|[一二两三四五六七八九])) ?[岁歲](?!的?(?:${chinese.agedThings.join('|')}))`,
  '(?<![\\p{L}])(?:undici|dodici|tredici|quattordici|quindici|sedici|diciassette|1[0-7]) ?enn[ei](?![\\p{L}])',
  '(?<![\\p{L}])(?:dodic|tredic|quattordic|quindic|sedic|diciassett)enn[ei](?![\\p{L}])',
];
const childPattern = `(?:${words(childTerms, chinese.child)}|${ages.join('|')})`;
const child = new RegExp(childPattern, 'u');
const children = new RegExp(childPattern, 'gu');

const adult = words(adultTerms, chinese.adult);
const nudities = new RegExp(
  `(?<!${adult} ?)${words(nudityTerms, chinese.nudity)}(?! ?的?${adult})`,
  'gu',
);

/**
 * Whether at most three words of the same sentence lie between a term for nakedness and one for a child.
 * Commas are no end: many prompts are lists of words.
 */
function hasNakedChild(text: string): boolean {
  const termsOf = (pattern: RegExp, nude: boolean) =>
    [...text.matchAll(pattern)].map(({ index, 0: { length } }) => ({
      nude,
      start: index,
      end: index + length,
    }));
  const terms = [...termsOf(nudities, true), ...termsOf(children, false)];
  terms.sort((a, b) => a.start - b.start);
  return terms.some((term, i) => {
    const before = terms[i - 1];
    if (before === undefined || before.nude === term.nude) return false;
    const gap = text.slice(before.end, Math.max(before.end, term.start));
    return /^[\p{L}\p{N}' ,、]{0,60}$/u.test(gap) && (gap.match(wordInGap)?.length ?? 0) <= 3;
  });
}
const wordInGap = /\p{Script=Han}{1,2}|[^\s,、\p{Script=Han}]+/gu;

/** Whether a text has an unambiguous sexual term (nakedness alone is none). */
export function hasSexualTerm(text: string): boolean {
  return sexual.test(normalized(text));
}

/**
 * Whether a prompt unambiguously names a child, or an age below 18. Where such a prompt meets a flagged
 * image or video, nothing is delivered.
 */
export function namesChild(prompt: string): boolean {
  return child.test(normalized(prompt));
}

/**
 * The one prompt that is refused everywhere (`PROMPT_REFUSED`), whatever the switches say: an unambiguous
 * sexual term together with an unambiguous term for a child or an age below 18, or nakedness beside such a
 * term. There is no other word filter. Languages: English, Chinese, German, French, Spanish, Italian,
 * Portuguese. Negations are not read ("no children"), and no misspelling is recognised.
 */
export function isRefusedPrompt(prompt: string): boolean {
  const text = normalized(prompt);
  if (!child.test(text)) return false;
  return sexual.test(text) || hasNakedChild(text);
}
