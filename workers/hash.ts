import * as Comlink from 'comlink';
import { installTransferHandlers } from '../lib/contract';
import { sourceHashService } from '../lib/weights/store';

/** The SHA-256 of what the library fetches, beside its conversion. */
installTransferHandlers();
Comlink.expose(sourceHashService());
