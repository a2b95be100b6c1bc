import type { Texts } from '../catalogue';
import common from './common.json';
import { errors } from './errors';
import { names } from './names';
import { terms } from './terms';

/** All Chinese texts. */
export const zh: Texts = { messages: { common, names }, errors, terms };
