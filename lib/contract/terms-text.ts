/** Version of the terms of use, the date of their last change. A new version has to be accepted again. */
export const termsVersion = '2026-11-22';

/** A part of the terms of use, as plain text. */
export interface TermsSection {
  readonly title: string;
  readonly text: string;
  readonly points: readonly string[];
  /** Source of the text, if it is the demand of someone else. */
  readonly source?: { readonly name: string; readonly url: string };
}

/** The terms of use. They restrict what may be made; they do not replace the licences of the models. */
export const terms: readonly TermsSection[] = [
  {
    title: 'What must not be made',
    text: 'Kinora and the models that it runs must not be used:',
    points: [
      'in a way that violates any law or regulation that applies to you;',
      'to exploit or harm minors, or to attempt it;',
      'to generate or spread false information on purpose, in order to harm others;',
      'to harass, threaten, defame or insult anyone;',
      'to show people nude or in sexual situations without their consent, or to make illegal pornography;',
      'to generate or spread personal information that can be used to harm someone;',
      'to make fully automated decisions that affect the legal rights or obligations of a person.',
    ],
  },
  {
    title: 'What the makers of the model demand',
    text:
      'The makers of Wan2.2 claim no rights over what you make, and hold you accountable for how you use the ' +
      'model. The following is their demand beside the licence (Apache-2.0), not a part of it. Do not share ' +
      'content that:',
    points: [
      'violates a law;',
      'harms a person or a group;',
      'spreads personal information that is meant to harm;',
      'spreads misinformation;',
      'targets vulnerable people.',
    ],
    source: { name: 'README of Wan2.2', url: 'https://github.com/Wan-Video/Wan2.2' },
  },
  {
    title: 'The safety checker errs',
    text:
      'The safety checker is a small image classifier. It misses unsafe frames and flags harmless ones, sees ' +
      'only some of the frames, and knows only nudity and sex. A video without a flag is not proven harmless: ' +
      'you remain responsible for what you make and share.',
    points: [],
  },
  {
    title: 'Videos are not facts',
    text:
      'Everything is generated. No video shows what happened, and likeness to real people or events proves ' +
      'nothing. Say that a video was generated where people could take it for a recording.',
    points: [],
  },
];
