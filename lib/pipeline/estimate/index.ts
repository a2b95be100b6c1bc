export { type Estimate, RunEstimator } from './estimator';
export { forecastTime, type TimeForecast } from './forecast';
export {
  type DeviceClass,
  deviceOf,
  keepRates,
  type Rates,
  ratesFolder,
  readRates,
  usualRates,
} from './rates';
export { type CountedRun, workOf } from './run-work';
export { type RunWork, stagesOf } from './work';
