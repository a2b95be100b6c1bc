import type { BenchmarkFamily } from '../pipeline/benchmark';
import { wan14bChecks } from './wan14b/checks';
import { wan22Checks } from './wan22/checks';

/** What families offer to `npm run bench`, by the name that manifests use. */
export const modelChecks: Readonly<Record<string, BenchmarkFamily>> = {
  wan14b: wan14bChecks,
  wan22: wan22Checks,
};
