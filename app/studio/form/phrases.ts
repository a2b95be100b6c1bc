import type { TextKey } from '../../texts';
import '../../texts/en/form';

/** A phrase that a button adds to a prompt and takes out again. */
export interface Phrase {
  readonly name: TextKey;
  /** English: it is for the model. */
  readonly text: string;
  /** What the bundled model makes of it, where it can (public/samples/README.md): path of the app's origin. */
  readonly clip?: `/${string}`;
}

/** How the camera moves, one sentence each. */
export const cameraMoves: readonly Phrase[] = [
  { name: 'form.camera.still', text: 'Static camera.' },
  {
    name: 'form.camera.pushIn',
    text: 'The camera slowly pushes in.',
    clip: '/samples/moves/push-in.mp4',
  },
  {
    name: 'form.camera.pullBack',
    text: 'The camera slowly pulls back.',
    clip: '/samples/moves/pull-back.mp4',
  },
  {
    name: 'form.camera.panLeft',
    text: 'The camera pans to the left.',
    clip: '/samples/moves/pan-left.mp4',
  },
  {
    name: 'form.camera.panRight',
    text: 'The camera pans to the right.',
    clip: '/samples/moves/pan-right.mp4',
  },
  { name: 'form.camera.tiltUp', text: 'The camera tilts up.', clip: '/samples/moves/tilt-up.mp4' },
  {
    name: 'form.camera.tiltDown',
    text: 'The camera tilts down.',
    clip: '/samples/moves/tilt-down.mp4',
  },
  { name: 'form.camera.orbit', text: 'The camera orbits around the subject.' },
  { name: 'form.camera.follow', text: 'The camera follows the subject.' },
  { name: 'form.camera.rise', text: 'The camera rises.' },
  { name: 'form.camera.handheld', text: 'Handheld camera with a slight shake.' },
];

/** What a video should not show, as lists between commas. */
export const negativePhrases: readonly Phrase[] = [
  {
    name: 'form.negative.quality',
    text: 'low quality, blurry details, overexposed, JPEG artefacts, flicker',
  },
  {
    name: 'form.negative.hands',
    text: 'deformed face, badly drawn hands, extra fingers, extra limbs',
  },
  { name: 'form.negative.text', text: 'subtitles, text, logo, watermark' },
  { name: 'form.negative.standstill', text: 'still picture, frozen motion, slideshow' },
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
