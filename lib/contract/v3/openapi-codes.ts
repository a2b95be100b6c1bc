import { predictionCodes } from './prediction';

type CodeName = keyof typeof predictionCodes;

/** What each code means that this server answers with. */
const meanings: Readonly<Partial<Record<CodeName, string>>> = {
  invalidParameter:
    'A LoRA does not fit: its file cannot be used, or it was made for another model.',
  mediaUnavailable: 'The image or a LoRA could not be had, or the image could not be read.',
  executionFailed: 'It failed for any other reason while it was computed, or it was cancelled.',
  unavailable:
    'No tab finished it: the last of its attempts was lost with its tab, or handed back.',
  timeout:
    'The last of its attempts passed its deadline. In synchronous mode also with status `processing`: the wait ended, and the prediction goes on.',
};

const codes = Object.entries(predictionCodes) as [CodeName, number][];

/** One row of the documentation. */
export interface PredictionCodeFact {
  readonly code: number;
  /** A sentence; backticks mark code. */
  readonly meaning: string;
}

/** Codes in `data.code`, in the order of their numbers. */
export const predictionCodeFacts: readonly PredictionCodeFact[] = codes
  .flatMap(([name, code]) => {
    const meaning = meanings[name];
    return meaning === undefined ? [] : [{ code, meaning }];
  })
  .toSorted((a, b) => a.code - b.code);

/** Codes that clients of this API family know, and that this server does not answer with. */
export const unusedPredictionCodes: readonly number[] = codes
  .flatMap(([name, code]) => (meanings[name] === undefined ? [code] : []))
  .toSorted((a, b) => a - b);
