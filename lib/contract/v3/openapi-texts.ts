import type { endpoints, OperationId } from './endpoints';
import type { ApiErrorCode } from './errors';
import { predictionCodeFacts } from './openapi-codes';

/** Operations that the public document shows. */
export type PublicOperation = {
  [Op in OperationId]: (typeof endpoints)[Op] extends { internal: true } ? never : Op;
}[OperationId];

/** What the document says of an operation beyond its schemas. */
export interface OperationText {
  readonly tag: 'Predictions' | 'Files' | 'Webhooks' | 'Models and prices';
  readonly description: string;
  /** Refusals of this operation, besides those that {@link refusalsOf} finds in the table. */
  readonly refusals?: readonly ApiErrorCode[];
}

export const tags: readonly { name: OperationText['tag']; description: string }[] = [
  { name: 'Predictions', description: 'Submit, follow, list, cancel and delete.' },
  { name: 'Files', description: 'Upload an image or a LoRA and name it in a submission.' },
  { name: 'Webhooks', description: 'The signing secret, the deliveries, and sending one again.' },
  { name: 'Models and prices', description: 'What can be asked for. Everything costs nothing.' },
];

const sameAsResult = 'The same answer as `GET /api/v3/predictions/{id}/result`.';

export const operationTexts: Readonly<Record<PublicOperation, OperationText>> = {
  submit: {
    tag: 'Predictions',
    description: [
      'Answers at once with status `created`; a connected browser tab of the key’s owner, or a shared one, computes the video.',
      'Fields that are not known are dropped; known ones out of their range are refused.',
      'With `enable_sync_mode` the answer is held until the end. When that takes too long it comes with status `processing`, `data.code` 5004 and `Sync mode timed out` in `data.error`; the prediction goes on.',
      'A prediction whose image or LoRA cannot be had fails later, with `data.code` 1402; one whose LoRA does not fit, with 1401.',
    ].join('\n\n'),
    refusals: ['INVALID_WEBHOOK', 'INVALID_IMAGE', 'IDEMPOTENCY_MISMATCH', 'TOO_MANY_JOBS'],
  },
  result: {
    tag: 'Predictions',
    description: [
      'A failed prediction is still HTTP 200: read `data.status`, and `data.error` for the reason. Poll every one to five seconds, or use `wait`, events or a webhook.',
      'Values of `data.code`:',
      predictionCodeFacts.map(({ code, meaning }) => `- ${code}: ${meaning}`).join('\n'),
    ].join('\n\n'),
  },
  get: { tag: 'Predictions', description: sameAsResult },
  legacyResult: { tag: 'Predictions', description: sameAsResult },
  list: {
    tag: 'Predictions',
    description:
      'Predictions of the key’s owner, a page at a time. A page beyond the last is empty.',
  },
  remove: {
    tag: 'Predictions',
    description:
      'Unknown ids and unfinished predictions are left alone and not counted: cancel first.',
  },
  cancel: {
    tag: 'Predictions',
    description:
      'The computing tab hears of it within two seconds. A prediction that has ended stays as it is.',
  },
  events: {
    tag: 'Predictions',
    description:
      'Events `status` (a prediction), `step` (`phase`, `step`, `steps`, `seconds_remaining`) and `preview` (`step`, `image` as a data URI). The stream ends after a terminal status.',
  },
  uploadTicket: {
    tag: 'Files',
    description:
      'Send the bytes to `upload.url` with `upload.method` and exactly `upload.headers`, without the API key; any 2xx means it is there. Then use `download_url`.',
  },
  uploadBinary: {
    tag: 'Files',
    description: 'An image (JPEG, PNG, WebP, AVIF, GIF) or a LoRA (`.safetensors`).',
    refusals: ['INVALID_PARAMETER', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  uploadBinaryLegacy: {
    tag: 'Files',
    description: 'The same as `POST /api/v3/media/upload/binary`.',
    refusals: ['INVALID_PARAMETER', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  models: {
    tag: 'Models and prices',
    description: 'Each entry’s `api_schema` holds the JSON Schema of its submissions.',
  },
  balance: {
    tag: 'Models and prices',
    description: 'There for tools that test a key with it.',
  },
  pricing: { tag: 'Models and prices', description: 'Always zero: the GPU is yours.' },
  price: { tag: 'Models and prices', description: 'Always zero: the GPU is yours.' },
  webhookSecret: {
    tag: 'Webhooks',
    description: '`whsec_` and 32 bytes in base64. One per owner; it serves both signatures.',
  },
  deliveries: {
    tag: 'Webhooks',
    description: 'A delivery that failed for good stays visible as `exhausted`.',
  },
  replay: {
    tag: 'Webhooks',
    description: 'The same body and `webhook-id`; receivers tell a duplicate by it.',
  },
};
