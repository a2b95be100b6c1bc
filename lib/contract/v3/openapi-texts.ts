import type { endpoints, OperationId } from './endpoints';
import type { ApiErrorCode } from './errors';
import { refusedFields } from './other-servers';
import { predictionCodeMeanings } from './prediction';

/** Operations of the public document. */
export type PublicOperation = {
  [Op in OperationId]: (typeof endpoints)[Op] extends { path: `/api/v${string}` } ? Op : never;
}[OperationId];

type Tag = 'Predictions' | 'Files' | 'Webhooks' | 'Models and prices';

export const tags: readonly { name: Tag; description: string }[] = [
  { name: 'Predictions', description: 'Submit, follow, list, cancel and delete.' },
  { name: 'Files', description: 'Upload an image or a LoRA for use in a submission.' },
  {
    name: 'Webhooks',
    description: 'The signing secret, the deliveries, and how to send one again.',
  },
  { name: 'Models and prices', description: 'The available models. Nothing costs money.' },
];

/** The tag of an operation, by its path. */
export function tagOf(path: string): Tag {
  if (path.includes('/webhook/')) return 'Webhooks';
  if (path.includes('/media/')) return 'Files';
  return /\/predictions\b|\{variant\}/.test(path) ? 'Predictions' : 'Models and prices';
}

const sameAsResult = 'The same response as `GET /api/v3/predictions/{id}/result`.';

/** The document's text on each operation, besides its schemas. */
export const operationTexts: Readonly<Record<PublicOperation, string>> = {
  submit: [
    'Responds immediately with status `created`; a connected browser tab of the key’s owner, or a shared one, computes the video.',
    'Unknown fields are dropped; known fields out of their range are rejected. Of fields that other servers have, `webhook_url` is read as `webhook`, `aspect_ratio` (16:9, 9:16, auto) and `resolution` (720p, 1280x720, 720x1280) as `size`, `high_noise_loras` and `low_noise_loras` as `loras` with a `noise`, an empty `last_image` as none. These are refused, unless they are empty:',
    Object.entries(refusedFields)
      .map(([names, remedy]) => `- \`${names.replaceAll(' ', '`, `')}\`: ${remedy}`)
      .join('\n'),
    'With `enable_sync_mode` the response is sent when the prediction has ended. If that takes too long, it has status `processing`, `data.code` 5004 and `Sync mode timed out` in `data.error`; the prediction continues.',
    'If an image or a LoRA cannot be fetched, the prediction fails later with `data.code` 1402; if a LoRA does not fit the model, with 1401. A failure that may pass, such as an unresolved name, a refused connection, a timeout or a 5xx of the image’s host, is tried again for about ten minutes: until then the status is `created`, and `data.image_retry` says why.',
    'A prompt that names a child in a sexual context is refused with `PROMPT_REFUSED`, and nothing is stored. A worker checks again; it also refuses a prompt that names a child where the safety checker flags the image or the video: the prediction then fails with `data.code` 1200.',
  ].join('\n\n'),
  legacySubmit: 'The same as `POST /api/v3/{provider}/{family}/{variant}`.',
  result: [
    'A failed prediction is still HTTP 200: read `data.status`, and the reason in `data.error`. Poll every one to five seconds, or use `wait`, events or a webhook.',
    'Values of `data.code`:',
    predictionCodeMeanings.map(({ code, meaning }) => `- ${code}: ${meaning}`).join('\n'),
  ].join('\n\n'),
  get: sameAsResult,
  legacyResult: sameAsResult,
  list: 'Predictions of the key’s owner, a page at a time. A page beyond the last is empty. To read all of them, request the first page and then go on with `cursor`: new predictions then shift nothing.',
  listByQuery: 'The same response as `POST /api/v3/predictions`.',
  remove:
    'Unknown ids and unfinished predictions are skipped and not counted. Cancel an unfinished prediction first.',
  cancel:
    'The computing tab stops within about two seconds. A prediction that has ended does not change.',
  share:
    'The page tells only what `include` names, besides the video; the video file tells nothing, and is that of `outputs`. The page works without a key and without JavaScript, has the tags of Open Graph and of player cards, and is not listed by search engines unless `allow_index` is true. A prediction has one link: a second request changes what it names and keeps the rest, also the address, unless the link was revoked or has expired. Deleting the prediction revokes it.',
  unshare: 'Takes effect immediately; the page then answers 410. A new link has another address.',
  events:
    'Events `status` (a prediction), `step` (`phase`, `step`, `steps`, `seconds_remaining`) and `preview` (`step`, `image` as a data URI). The stream ends after a terminal status.',
  uploadTicket:
    'Send the bytes to `upload.url` with `upload.method` and exactly `upload.headers`, without the API key; any 2xx means success. Then use `download_url`.',
  uploadBinary: 'An image (JPEG, PNG, WebP, AVIF, GIF, BMP) or a LoRA (`.safetensors`).',
  uploadBinaryLegacy: 'The same as `POST /api/v3/media/upload/binary`.',
  models: 'Each entry’s `api_schema` holds the JSON Schema of its submissions.',
  balance: 'Exists for tools that call it to test a key.',
  pricing: 'Always zero: the GPU is yours.',
  price: 'Always zero: the GPU is yours.',
  billings: 'Exists for tools that list payments.',
  usage: 'Exists for tools that show costs; `GET /api/v3/predictions` has what was made.',
  usageByBody: 'The same as the GET.',
  webhookSecret: '`whsec_` and 32 bytes in base64. One per owner, for both signatures.',
  deliveries: 'A delivery whose attempts all failed stays visible as `exhausted`.',
  replay: 'Sends the same body and `webhook-id`; receivers recognise duplicates by this id.',
};

const uploadErrors = ['INVALID_PARAMETER', 'TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'] as const;

/** Errors of operations, besides those that `errorsOf` derives from the table. */
export const furtherErrors: Readonly<Partial<Record<PublicOperation, readonly ApiErrorCode[]>>> = {
  share: ['NOTHING_TO_SHARE'],
  uploadBinary: uploadErrors,
  uploadBinaryLegacy: uploadErrors,
};
