import type { ParityFamily } from '../../pipeline/parity';
import { recognises14b, wan14bParityStages } from './parity';

/** What the developers' commands compare of the 14B models. */
export const wan14bChecks: ParityFamily = {
  recognises: recognises14b,
  parityStages: wan14bParityStages,
};
