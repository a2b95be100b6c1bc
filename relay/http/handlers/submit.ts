import { createHash, randomUUID } from 'node:crypto';
import {
  isRefusedPrompt,
  requirePlaceOfLastImage,
  toKinoraError,
  twoTransformerModels,
} from '../../../lib/contract';
import {
  ApiError,
  type ApiPrediction,
  predictionCodes,
  type Submission,
} from '../../../lib/contract/v3';
import { type Config, familiesOf, modelsFor } from '../../config';
import { invalidField } from '../../files/requests';
import { isTerminal } from '../../jobs';
import type { NewJob } from '../../jobs/submit';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import { toApiError } from '../reply';
import { notFound } from '../router';
import { answerJob, describeJob } from './describe';
import type { CallOf, HandlerOf } from './index';
import { waitForEnd } from './predictions';

/** The key of a request's header; null where there is none. @throws ApiError `INVALID_PARAMETER` */
function idempotencyKeyOf(request: Request): string | null {
  const key = request.headers.get('idempotency-key');
  if (key === null || key === '') return null;
  if (key.length <= 255) return key;
  throw invalidField('Idempotency-Key', 'Idempotency-Key must have at most 255 characters.');
}

/**
 * SHA-256 over model, webhook and the parsed body: the order of fields does not count, nor does the place of the
 * webhook.
 */
export function hashOf(model: string, webhookUrl: string | null, submission: Submission): string {
  return createHash('sha256')
    .update(JSON.stringify([model, webhookUrl, { ...submission, webhook: undefined }]))
    .digest('hex');
}

/** `POST /api/v3/{provider}/{family}/{variant}`: the job's row is written before the answer. */
export const submit: HandlerOf<'submit' | 'legacySubmit'> = async (relay, call) => {
  const { provider, family, variant } = call.params;
  const families = familiesOf(relay.config);
  if (!families.has(`${provider}/${family}`)) {
    throw notFound(new URL(call.request.url).pathname, [...families.keys()]);
  }
  if (isRefusedPrompt(call.body.prompt)) throw new ApiError('PROMPT_REFUSED');
  const model = `${provider}/${family}/${variant}`;
  const models = servingModels(relay.config, model, call.body);
  const webhook = webhookOf(call.request.url, call.body.webhook);
  const webhookUrl = webhook === null ? null : relay.webhooks.checkUrl(webhook);
  try {
    requirePlaceOfLastImage(call.body, call.body.last_image);
  } catch (thrown) {
    const { code, message, remedy } = toKinoraError(thrown);
    const field = code === 'LOOP_WITH_LAST_IMAGE' ? 'last_image' : 'last_image_at';
    throw invalidField(field, message, { remedy });
  }
  if (webhookUrl !== null && call.body.enable_base64_output) {
    // As in this API family: receivers limit the size of a webhook.
    const message = 'enable_base64_output cannot be true together with a webhook.';
    const remedy = 'Leave one of them out: a webhook has the URL of the video.';
    throw invalidField('enable_base64_output', message, { remedy });
  }
  if (webhookUrl === null && call.body.webhook_events) {
    // Then no event would be sent.
    const remedy = 'Name a `webhook`, or leave webhook_events out.';
    throw invalidField('webhook_events', 'webhook_events needs a webhook.', { remedy });
  }
  const job = await submitOnce(relay, call, { model, models, webhookUrl });
  // An earlier job of the same Idempotency-Key may have ended.
  if (!call.body.enable_sync_mode) return answerJob(relay, job);
  return holdAnswer(relay, job, call.request.signal);
};

/**
 * The models that may serve a submission: for a name of the 5B those with one transformer, for a LoRA of one of two
 * transformers those with two.
 *
 * @throws ApiError `INVALID_PARAMETER` where none has two
 */
function servingModels(config: Config, model: string, { loras }: Submission): readonly string[] {
  const models = modelsFor(config, model);
  const hasTwo = (id: string) => twoTransformerModels.includes(id);
  const is5b = model.includes('/i2v-5b-');
  if (!loras.some(({ noise }) => noise)) return is5b ? models.filter((id) => !hasTwo(id)) : models;
  const two = models.includes('*') ? twoTransformerModels : models.filter(hasTwo);
  if (!is5b && two.length > 0) return two;
  const sentence = `${model} has one transformer: no LoRA is for its high or low noise alone.`;
  throw invalidField('loras', sentence, { remedy: 'Send them as `loras`, without `noise`.' });
}

/**
 * The webhook of a submission. Clients percent-encode it, or append it unchanged to the model's name
 * (lib/contract/v3/README.md): then everything after `webhook=` is its address, whose own query may have `&`.
 *
 * @param address of the request
 * @param inBody its twin in the body
 * @returns null where there is none, or an empty one
 * @throws ApiError `INVALID_WEBHOOK` where both name one, and not the same
 */
export function webhookOf(address: string, inBody: string): string | null {
  const query = address.split('#')[0]?.replace(/^[^?]*\??/, '') ?? '';
  const glued = /(?:^|&)webhook=([a-z][a-z0-9+.-]*:\/\/.*)$/i.exec(query)?.[1];
  const inQuery = (glued ?? new URLSearchParams(query).get('webhook') ?? '').trim();
  const other = inBody.trim();
  if (inQuery !== '' && other !== '' && inQuery !== other) {
    const options = { code: 'INVALID_WEBHOOK', remedy: 'Leave one of them out.' } as const;
    throw invalidField('webhook', 'The query and the body name two webhooks.', options);
  }
  return inQuery || other || null;
}

/**
 * Submits a job, or finds the one that was submitted before under the same `Idempotency-Key`. If two equal requests
 * come at the same time, the first insert counts, and both get its job.
 */
async function submitOnce(
  relay: Relay,
  { request, caller, body: submission }: CallOf<'submit'>,
  route: Pick<NewJob, 'model' | 'models' | 'webhookUrl'>,
): Promise<JobRow> {
  const { model, webhookUrl } = route;
  const key = idempotencyKeyOf(request);
  const idempotency = key === null ? null : { key, hash: hashOf(model, webhookUrl, submission) };
  const earlier = idempotency && (await relay.jobs.submittedBefore(caller.keyId, idempotency));
  if (earlier) return earlier;

  const id = randomUUID().replaceAll('-', '');
  const accepted = await relay.files.intake.accept(id, submission, caller);
  // The sweep of files removes what remains.
  const removeFiles = () => relay.files.removeOf(id).catch(() => undefined);
  try {
    const order = { id, caller, ...route, idempotency };
    const job = await relay.jobs.submit({ ...order, ...accepted });
    if (job.id !== id) await removeFiles();
    return job;
  } catch (error) {
    // If only the answer to the commit was lost, the job exists and needs its image.
    if (toApiError(error).status < 500) await removeFiles();
    throw error;
  }
}

/**
 * Synchronous mode: the answer waits for the video, for a limited time (lib/contract/v3/README.md, 5).
 */
async function holdAnswer(
  relay: Relay,
  job: JobRow,
  client: AbortSignal,
): Promise<ApiPrediction | Response> {
  const last = (await waitForEnd(relay, job, relay.config.KINORA_SYNC_SECONDS, client)) ?? job;
  if (isTerminal(last)) return answerJob(relay, last);
  return {
    ...(await describeJob(relay, last)),
    // Also while the job waits for a worker: clients compare with this word.
    status: 'processing',
    code: predictionCodes.timeout,
    error: 'Sync mode timed out; the task continues. Request its result at `urls.get`.',
  };
}
