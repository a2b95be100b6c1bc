import type { endpoints, OperationId } from './endpoints';
import type { ApiErrorCode } from './errors';
import { refusedFields } from './other-servers';
import { predictionCodeMeanings } from './prediction';

/** Operations of the public document. */
export type PublicOperation = {
  [Op in OperationId]: (typeof endpoints)[Op] extends { path: `/api/v${string}` } ? Op : never;
}[OperationId];

/** The document's text on an operation, besides its schemas. */
export interface OperationText {
  readonly tag: 'Predictions' | 'Files' | 'Webhooks' | 'Models and prices';
  readonly description: string;
  /** Errors of this operation, besides those that `errorsOf` derives from the table. */
  readonly errors?: readonly ApiErrorCode[];
}

export const tags: readonly { name: OperationText['tag']; description: string }[] = [
  { name: 'Predictions', description: 'Submit, follow, list, cancel and delete.' },
  { name: 'Files', description: 'Upload an image or a LoRA for use in a submission.' },
  {
    name: 'Webhooks',
    description: 'The signing secret, the deliveries, and how to send one again.',
  },
  { name: 'Models and prices', description: 'The available models. Nothing costs money.' },
];

const sameAsResult = 'The same response as `GET /api/v3/predictions/{id}/result`.';

export const operationTexts: Readonly<Record<PublicOperation, OperationText>> = {
  submit: {
    tag: 'Predictions',
    description: [
      'Responds immediately with status `created`; a connected browser tab of the key’s owner, or a shared one, computes the video.',
      'Unknown fields are dropped; known fields out of their range are rejected. Of fields that other servers have, `webhook_url` is read as `webhook`, `aspect_ratio` (16:9, 9:16, auto) and `resolution` (720p, 1280x720, 720x1280) as `size`, `high_noise_loras` and `low_noise_loras` as `loras` with a `noise`, an empty `last_image` as none. These are refused, unless they are empty:',
      Object.entries(refusedFields)
        .map(([names, remedy]) => `- \`${names.replaceAll(' ', '`, `')}\`: ${remedy}`)
        .join('\n'),
      'With `enable_sync_mode` the response is sent when the prediction has ended. If that takes too long, it has status `processing`, `data.code` 5004 and `Sync mode timed out` in `data.error`; the prediction continues.',
      'If an image or a LoRA cannot be fetched, the prediction fails later with `data.code` 1402; if a LoRA does not fit the model, with 1401. A failure that may pass, such as an unresolved name, a refused connection, a timeout or a 5xx of the image’s host, is tried again for about ten minutes: until then the status is `created`, and `data.image_retry` says why.',
      'A prompt that names a child in a sexual context is refused with `PROMPT_REFUSED`, and nothing is stored. A worker checks again; it also refuses a prompt that names a child where the safety checker flags the image or the video: the prediction then fails with `data.code` 1200.',
    ].join('\n\n'),
  },
  legacySubmit: {
    tag: 'Predictions',
    description: 'The same as `POST /api/v3/{provider}/{family}/{variant}`.',
  },
  result: {
    tag: 'Predictions',
    description: [
      'A failed prediction is still HTTP 200: read `data.status`, and the reason in `data.error`. Poll every one to five seconds, or use `wait`, events or a webhook.',
      'Values of `data.code`:',
      predictionCodeMeanings.map(({ code, meaning }) => `- ${code}: ${meaning}`).join('\n'),
    ].join('\n\n'),
  },
  get: { tag: 'Predictions', description: sameAsResult },
  legacyResult: { tag: 'Predictions', description: sameAsResult },
  list: {
    tag: 'Predictions',
    description:
      'Predictions of the key’s owner, a page at a time. A page beyond the last is empty. To read all of them, request the first page and then go on with `cursor`: new predictions then shift nothing.',
  },
  listByQuery: {
    tag: 'Predictions',
    description: 'The same response as `POST /api/v3/predictions`.',
  },
  remove: {
    tag: 'Predictions',
    description:
      'Unknown ids and unfinished predictions are skipped and not counted. Cancel an unfinished prediction first.',
  },
  cancel: {
    tag: 'Predictions',
    description:
      'The computing tab stops within about two seconds. A prediction that has ended does not change.',
  },
  share: {
    tag: 'Predictions',
    description:
      'The page tells only what `include` names, besides the video; the video file tells nothing, and is that of `outputs`. The page works without a key and without JavaScript, has the tags of Open Graph and of player cards, and is not listed by search engines unless `allow_index` is true. A prediction has one link: a second request changes what it names and keeps the rest, also the address, unless the link was revoked or has expired. Deleting the prediction revokes it.',
    errors: ['NOTHING_TO_SHARE'],
  },
  unshare: {
    tag: 'Predictions',
    description:
      'Takes effect immediately; the page then answers 410. A new link has another address.',
  },
  events: {
    tag: 'Predictions',
    description:
      'Events `status` (a prediction), `step` (`phase`, `step`, `steps`, `seconds_remaining`) and `preview` (`step`, `image` as a data URI). The stream ends after a terminal status.',
  },
  uploadTicket: {
    tag: 'Files',
    description:
      'Send the bytes to `upload.url` with `upload.method` and exactly `upload.headers`, without the API key; any 2xx means success. Then use `download_url`.',
  },
  uploadBinary: {
    tag: 'Files',
    description: 'An image (JPEG, PNG, WebP, AVIF, GIF, BMP) or a LoRA (`.safetensors`).',
    errors: ['INVALID_PARAMETER', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  uploadBinaryLegacy: {
    tag: 'Files',
    description: 'The same as `POST /api/v3/media/upload/binary`.',
    errors: ['INVALID_PARAMETER', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'],
  },
  models: {
    tag: 'Models and prices',
    description: 'Each entry’s `api_schema` holds the JSON Schema of its submissions.',
  },
  balance: {
    tag: 'Models and prices',
    description: 'Exists for tools that call it to test a key.',
  },
  pricing: { tag: 'Models and prices', description: 'Always zero: the GPU is yours.' },
  price: { tag: 'Models and prices', description: 'Always zero: the GPU is yours.' },
  billings: { tag: 'Models and prices', description: 'Exists for tools that list payments.' },
  usage: {
    tag: 'Models and prices',
    description: 'Exists for tools that show costs; `GET /api/v3/predictions` has what was made.',
  },
  usageByBody: { tag: 'Models and prices', description: 'The same as the GET.' },
  webhookSecret: {
    tag: 'Webhooks',
    description: '`whsec_` and 32 bytes in base64. One per owner, for both signatures.',
  },
  deliveries: {
    tag: 'Webhooks',
    description: 'A delivery whose attempts all failed stays visible as `exhausted`.',
  },
  replay: {
    tag: 'Webhooks',
    description: 'Sends the same body and `webhook-id`; receivers recognise duplicates by this id.',
  },
};
