import type { LanguageModel } from '../language-model';

type Request = Parameters<LanguageModel['generate']>[0];

/** One answer of a {@link scriptedModel}: a text, something made of the request, or an error to throw. */
export type Step = string | Error | ((request: Request) => string | Promise<string>);

export interface ScriptedModel extends LanguageModel {
  readonly requests: Request[];
}

/** A language model that gives these answers in order, the last one again and again. */
export function scriptedModel(...steps: Step[]): ScriptedModel {
  const requests: Request[] = [];
  return {
    name: 'scripted',
    sha256: 'a'.repeat(64),
    requests,
    async generate(request) {
      requests.push(request);
      const step = steps[Math.min(requests.length, steps.length) - 1] ?? '';
      if (step instanceof Error) throw step;
      const answer = typeof step === 'function' ? await step(request) : step;
      request.onText?.(answer);
      return answer;
    },
  };
}

/** Gives a text to `onText` and never ends, not even when it is aborted. */
export const hangsAfter =
  (soFar: string): Step =>
  (request) => {
    request.onText?.(soFar);
    return new Promise(() => {});
  };

/** About one token for each word or Chinese character. */
export const countWords = (text: string): number =>
  text.match(/\p{Script=Han}|[^\s\p{Script=Han}]+/gu)?.length ?? 0;
