import * as Comlink from 'comlink';
import { sourceHashService } from '../lib/weights/store';

/** The SHA-256 of what the library fetches, beside its conversion. */
Comlink.expose(sourceHashService());
