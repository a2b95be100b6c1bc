import code from './code.json';
import common from './common.json';
import files from './files.json';
import form from './form.json';
import framing from './framing.json';
import gallery from './gallery.json';
import help from './help.json';
import improve from './improve.json';
import keys from './keys.json';
import link from './link.json';
import models from './models.json';
import { names } from './names';
import queue from './queue.json';
import result from './result.json';
import run from './run.json';
import { serve } from './serve';
import settings from './settings.json';
import share from './share.json';
import shared from './shared.json';
import studio from './studio.json';

/**
 * All English texts, by area and key, in ICU MessageFormat. The keys of the other languages are the same. Pages do
 * not import this: they load the areas that they need.
 */
export const messages = {
  common,
  shared,
  files,
  code,
  improve,
  framing,
  form,
  gallery,
  queue,
  run,
  result,
  share,
  keys,
  link,
  models,
  serve,
  settings,
  studio,
  help,
  names,
};
