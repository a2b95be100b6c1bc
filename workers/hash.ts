import { exposeWorker } from '../lib/contract';
import { sourceHashService } from '../lib/weights/store';

/** The SHA-256 of what the library fetches, beside its conversion. */
exposeWorker(sourceHashService());
