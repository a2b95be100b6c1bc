import { skipReasons } from '../../../lib/contract';
import { addTexts } from '../english';
import texts from './serve.json';

/** The command line shows the same reasons. */
export const serve = { ...texts, skips: skipReasons };

addTexts({ serve });
