import type { ModelFamilies } from '../pipeline/model';
import { wan14bFamily } from './wan14b/wan14b';
import { wan22Family } from './wan22/wan22';

/** Every model family of this version, by the name that manifests use. */
export const modelFamilies: ModelFamilies = { wan22: wan22Family, wan14b: wan14bFamily };
