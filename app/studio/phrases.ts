/** A phrase that a button adds to a prompt and takes out again. */
export interface Phrase {
  readonly name: string;
  readonly text: string;
}

/** How the camera moves, one sentence each. */
export const cameraMoves: readonly Phrase[] = [
  { name: 'Still', text: 'Static camera.' },
  { name: 'Push in', text: 'The camera slowly pushes in.' },
  { name: 'Pull back', text: 'The camera slowly pulls back.' },
  { name: 'Pan left', text: 'The camera pans to the left.' },
  { name: 'Pan right', text: 'The camera pans to the right.' },
  { name: 'Tilt up', text: 'The camera tilts up.' },
  { name: 'Tilt down', text: 'The camera tilts down.' },
  { name: 'Orbit', text: 'The camera orbits around the subject.' },
  { name: 'Follow', text: 'The camera follows the subject.' },
  { name: 'Rise', text: 'The camera rises.' },
  { name: 'Handheld', text: 'Handheld camera with a slight shake.' },
];

/** What a video should not show, as lists between commas. */
export const negativePhrases: readonly Phrase[] = [
  {
    name: 'Low quality',
    text: 'low quality, blurry details, overexposed, JPEG artefacts, flicker',
  },
  { name: 'Hands and faces', text: 'deformed face, badly drawn hands, extra fingers, extra limbs' },
  { name: 'Text', text: 'subtitles, text, logo, watermark' },
  { name: 'Standstill', text: 'still picture, frozen motion, slideshow' },
];

/** A prompt with a sentence at its end, or without it where it has it. */
export function toggleSentence(prompt: string, sentence: string): string {
  if (prompt.includes(sentence)) return without(prompt, sentence, / ?$/);
  const text = prompt.trimEnd();
  if (text === '') return sentence;
  return `${text}${/[.!?…。！？]$/u.test(text) ? '' : '.'} ${sentence}`;
}

/** A list between commas with more at its end, or without it where it has it. */
export function toggleList(prompt: string, list: string): string {
  if (prompt.includes(list)) return without(prompt, list, /[,，]? ?$/u);
  const text = prompt.trim().replace(/[,，]$/u, '');
  return text === '' ? list : `${text}, ${list}`;
}

/** A text without a part of it and what joins that to the text before, or else to the text after. */
function without(text: string, part: string, joint: RegExp): string {
  const at = text.indexOf(part);
  const before = text.slice(0, at).replace(joint, '');
  const after = text.slice(at + part.length);
  return before === '' ? after.replace(/^[,，]?\s*/u, '') : before + after;
}
