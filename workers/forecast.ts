import { expose } from 'comlink';
import { installTransferHandlers } from '../lib/contract';
import { forecast } from '../lib/engine/estimate';
import { modelFamilies } from '../lib/models';

// Beside the engine, which may be busy.
installTransferHandlers();
expose({ forecast: forecast.bind(null, modelFamilies) });
