import type { ParsedPrompt } from './protect';

const rules =
  'You rewrite an instruction for an image-to-video model. The picture is given; you cannot see it. ' +
  'Describe in order what moves and how, then the camera, in 40 to 80 words, plain sentences, present tense, one paragraph. ' +
  'Keep every subject, action, number, name and direction. Invent no people, objects, clothes, places, colours or style. ' +
  'Put a given style first. Keep a given camera move and add no other; without one, the camera holds still. ' +
  'Add only small natural motion of what is named. No mood words, no list, no comment.';

const example =
  'Example\nInstruction: A dog runs along the beach, zoom in.\n' +
  'Answer: The dog runs along the beach with long, even steps, its legs reaching forward and its ears moving with each step. ' +
  'It keeps its pace and lifts its head slightly while it runs. The camera zooms in slowly on the dog.';

/** The two messages for the model; the prompt is data of the second one. */
export function instructionFor(prompt: ParsedPrompt): { system: string; user: string } {
  const copy =
    prompt.inPlace.length > 0
      ? ` Copy each of these exactly once, in this order: ${prompt.inPlace.join(' ')}`
      : '';
  return {
    system: `${rules} Answer in ${prompt.lexicon.name}.${copy}\n\n${example}`,
    user: `Instruction: ${prompt.source}`,
  };
}

/** Most characters between two protected spans. */
const bodyLength = 400;

function literal(text: string): string {
  const body = text
    .replace(/["\\]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replaceAll('\t', '\\t');
  return `"${body}"`;
}

/**
 * GBNF of llama.cpp that forces every span inside the sentences, once and in order, and a finished last
 * sentence. Only lists of allowed characters: a negated class lets broken UTF-8 through.
 */
export function grammarFor({ inPlace, lexicon, source }: ParsedPrompt): string {
  const chinese = lexicon.language === 'zh';
  const characters = chinese ? '[一-鿿，、；：（）。0-9A-Za-z ]' : "[a-zA-Z0-9 .,;:'()À-ɏ%°-]";
  const first = inPlace[0] !== undefined && source.startsWith(inPlace[0]);
  const parts = inPlace.flatMap((span, i) => [i === 0 && first ? 'gap' : 'body', literal(span)]);
  return [
    `root ::= ${[...parts, inPlace.length > 0 ? 'gap' : 'body', 'end'].join(' ')}`,
    `body ::= ${characters}{1,${bodyLength}}`,
    ...(inPlace.length > 0 ? [`gap ::= ${characters}{0,${bodyLength}}`] : []),
    `end ::= ${chinese ? '[。！？]' : '[.!?]'}`,
  ].join('\n');
}

/** Tokens of an answer: 160 for the text, and what the spans need at worst. */
export function maxTokensFor({ inPlace }: ParsedPrompt): number {
  return 160 + inPlace.reduce((sum, span) => sum + span.length, 0);
}
