import type { Texts } from '../catalogue';
import code from './code.json';
import common from './common.json';
import { errors } from './errors';
import files from './files.json';
import form from './form.json';
import framing from './framing.json';
import gallery from './gallery.json';
import help from './help.json';
import improve from './improve.json';
import keys from './keys.json';
import link from './link.json';
import { manifests } from './manifests';
import models from './models.json';
import { names } from './names';
import queue from './queue.json';
import result from './result.json';
import run from './run.json';
import serve from './serve.json';
import settings from './settings.json';
import share from './share.json';
import shared from './shared.json';
import studio from './studio.json';
import { terms } from './terms';

/** All Chinese texts. */
export const zh: Texts = {
  messages: {
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
  },
  errors,
  terms,
  manifests,
};
