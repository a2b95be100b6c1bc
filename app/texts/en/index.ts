import { componentTexts, phaseNames, profileTitles } from '../../../lib/contract/format';
import { terms } from '../../../lib/contract/terms-text';
import { outcomeNames } from '../../../lib/worker/serve-page';
import common from './common.json';
import form from './form.json';
import gallery from './gallery.json';
import keys from './keys.json';
import models from './models.json';
import queue from './queue.json';
import result from './result.json';
import run from './run.json';
import serve from './serve.json';
import settings from './settings.json';
import shared from './shared.json';

const names = {
  phase: phaseNames,
  profile: profileTitles,
  component: componentTexts,
  outcome: outcomeNames,
};

/** All English texts, by area and key, in ICU MessageFormat. The keys of the other languages are the same. */
export const messages = {
  common,
  shared,
  form,
  gallery,
  queue,
  run,
  result,
  keys,
  models,
  serve,
  settings,
  names,
};

/** Errors are in English already. */
export const en = { messages, errors: null, terms, manifests: null };
