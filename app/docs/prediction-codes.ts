import { predictionCodes } from '../../lib/contract/v3/prediction';

const meanings: Readonly<Record<keyof typeof predictionCodes, string>> = {
  contentModeration: 'The content was not allowed.',
  missingParameter: 'A parameter that the job needs is missing.',
  invalidParameter: 'A parameter turned out to be unusable, such as a LoRA that does not fit.',
  mediaUnavailable: 'The image or a LoRA could not be had; `error` says why.',
  executionFailed: 'The tab could not compute it, or it was cancelled; `error` says why.',
  internal: 'Something went wrong inside Kinora.',
  unavailable: 'No tab could finish it: every attempt lost its lease or its deadline.',
  timeout: 'Only in synchronous mode: the wait ended, and the prediction goes on.',
};

/** Codes in `data.code`, in the order of their numbers. */
export const predictionCodeFacts = Object.entries(predictionCodes)
  .map(([name, code]) => ({ code, meaning: meanings[name as keyof typeof predictionCodes] }))
  .toSorted((a, b) => a.code - b.code);
