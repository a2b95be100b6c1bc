export { type Estimate, forecastTime, RunEstimator, type TimeForecast } from './estimator';
export {
  type DeviceClass,
  deviceOf,
  keepRates,
  type Rates,
  ratesFolder,
  readRates,
  usualRates,
} from './rates';
export { type CountedRun, type Stage, stagesOf } from './stages';
