import { expose } from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { forecast } from '../lib/engine/forecast';
import { modelFamilies } from '../lib/models';

// Beside the engine, which may be busy.
installErrorTransfer();
expose({ forecast: forecast.bind(null, modelFamilies) });
