import type { Texts } from '../catalogue';
import common from './common.json';
import { errors } from './errors';
import form from './form.json';
import keys from './keys.json';
import models from './models.json';
import { names } from './names';
import serve from './serve.json';
import settings from './settings.json';
import shared from './shared.json';
import { terms } from './terms';

/** All Chinese texts. */
export const zh: Texts = {
  messages: { common, shared, form, keys, models, serve, settings, names },
  errors,
  terms,
};
