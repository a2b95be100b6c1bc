export { type Estimate, RunEstimator } from './estimator';
export {
  type DeviceClass,
  keepRates,
  type Rates,
  ratesFolder,
  readRates,
  usualRates,
} from './rates';
export { type RunWork, stagesOf } from './work';
