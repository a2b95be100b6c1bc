import type { ParityFamily } from '../../pipeline/parity';
import { wan22ParityStages } from './parity';

/** What the developers' commands compare of Wan2.2-TI2V. */
export const wan22Checks: ParityFamily = {
  // Its references were the first, and name no family.
  recognises: (golden) => typeof golden === 'object' && golden !== null && 'dit_timestep' in golden,
  parityStages: wan22ParityStages,
};
