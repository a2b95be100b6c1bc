/** The running SHA-256 of an installation in a thread of its own; for tests only. */
import * as Comlink from 'comlink';
import { sourceHashService } from '../../../weights/store';

Comlink.expose(sourceHashService());
