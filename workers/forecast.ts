import * as Comlink from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { modelFamilies } from '../lib/models';
import { type ForecastRequest, forecast } from './forecast/forecast';

/** Tells what requests take, beside the engine, which may be busy. */
const api = {
  forecast: (request: ForecastRequest) => forecast(modelFamilies, request),
};

/** What the page sees of the worker. */
export type ForecastApi = typeof api;

installErrorTransfer();
Comlink.expose(api);
