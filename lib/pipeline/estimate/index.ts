export { forecastTime, RunEstimator, type TimeForecast } from './estimator';
export { deviceOf, keepPaces, ratesFolder, readPaces, usualRates } from './rates';
export { type CountedRun, stagesOf } from './stages';
