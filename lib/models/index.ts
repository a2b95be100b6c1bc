import type { ModelFamilies } from '../pipeline/model';
import { wanKinds } from './wan/kinds';
import { wanFamily } from './wan/model';

/** Every model family of this version, by the name that manifests use. */
export const modelFamilies = {
  wan22: wanFamily(wanKinds.wan22),
  wan14b: wanFamily(wanKinds.wan14b),
} satisfies ModelFamilies;
