import type { ParityFamily } from '../pipeline/parity';
import { wan14bChecks } from './wan14b/checks';
import { wan22Checks } from './wan22/checks';

/** What families offer to the developers' commands, by the name that manifests use. */
export const modelChecks: Readonly<Record<string, ParityFamily>> = {
  wan14b: wan14bChecks,
  wan22: wan22Checks,
};
