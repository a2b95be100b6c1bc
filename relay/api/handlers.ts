import { adminHandlers } from '../access/handlers';
import { balance, models, price, pricing } from './catalogue';
import { events } from './events';
import type { Handlers } from './handler';
import { cancel, get, list, remove, result } from './predictions';
import { submit } from './submit';
import { uploadTicket } from './uploads';
import { deliveries, replay, webhookSecret } from './webhooks';
import { workerHandlers } from './worker';

/** Every operation that goes through Next. The two multipart uploads are the Node server's. */
export const handlers: Handlers = {
  submit,
  result,
  get,
  legacyResult: get,
  list,
  remove,
  cancel,
  events,
  uploadTicket,
  models,
  balance,
  pricing,
  price,
  webhookSecret,
  deliveries,
  replay,
  ...adminHandlers,
  ...workerHandlers,
};
