/** The running SHA-256 of an installation in a thread of its own, as the library has it. */
import { parentPort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import nodeEndpoint from 'comlink/dist/umd/node-adapter';
import { sourceHashService } from '../../weights/store';

if (parentPort) Comlink.expose(sourceHashService(), nodeEndpoint(parentPort));
