import { randomUUID } from 'node:crypto';
import {
  ApiError,
  type ApiPrediction,
  predictionCodes,
  type Submission,
} from '../../lib/contract/v3';
import type { Caller, Relay } from '../relay';
import type { JobRow } from '../store/schema';
import { waitForEnd } from './changes';
import { describeWithPosition, isTerminal } from './describe';
import { toApiError } from './failure';
import type { CallOf, HandlerOf } from './handler';
import {
  confirm,
  giveBack,
  hashOf,
  type IdempotentRequest,
  idempotencyKeyOf,
  inFlight,
  reserve,
} from './idempotency';

/** `POST /api/v3/{provider}/{family}/{variant}`: the job's row is written before the answer. */
export const submit: HandlerOf<'submit'> = async (relay, call) => {
  const { provider, family, variant } = call.params;
  if (!relay.config.KINORA_FAMILIES.includes(`${provider}/${family}`)) {
    throw new ApiError('NOT_FOUND', 'There is no such model.');
  }
  const model = `${provider}/${family}/${variant}`;
  const webhook = webhookOf(call.request.url);
  const webhookUrl = webhook === null ? null : relay.webhooks.checkUrl(webhook);
  const order: Order = { model, webhookUrl, caller: call.caller, submission: call.body };
  const job = await submitOnce(relay, call, order);
  if (!call.body.enable_sync_mode) return describeWithPosition(relay, job);
  return holdAnswer(relay, job, call.request.signal);
};

interface Order {
  readonly model: string;
  readonly webhookUrl: string | null;
  readonly caller: Caller;
  readonly submission: Submission;
}

/**
 * The webhook as it was meant. Clients write it percent-encoded, or glue it to the model's name as it
 * is (v3-api.md §1): then everything after `webhook=` is its address, whose own query may have `&`.
 *
 * @param address of the request
 */
export function webhookOf(address: string): string | null {
  const query = address.split('#')[0]?.replace(/^[^?]*\??/, '') ?? '';
  const glued = /(?:^|&)webhook=([a-z][a-z0-9+.-]*:\/\/.*)$/i.exec(query)?.[1];
  return glued ?? new URLSearchParams(query).get('webhook');
}

async function submitOnce(relay: Relay, call: CallOf<'submit'>, order: Order): Promise<JobRow> {
  const id = randomUUID().replaceAll('-', '');
  const idempotencyKey = idempotencyKeyOf(call.request);
  if (idempotencyKey === null) return insert(relay, id, order);
  const { model, webhookUrl, caller, submission } = order;
  const request: IdempotentRequest = {
    keyId: caller.keyId,
    idempotencyKey,
    bodyHash: hashOf(model, webhookUrl, submission),
  };
  const find = (jobId: string) => relay.jobs.get(jobId, caller.owner);
  const exists = async (jobId: string) => (await find(jobId)) !== null;
  const { mine, jobId } = await reserve(relay.store, request, id, exists);
  if (!mine) {
    const earlier = await find(jobId);
    if (earlier !== null) return earlier;
    throw inFlight();
  }
  return insert(relay, jobId, order, {
    confirm: () => confirm(relay.store, request, jobId),
    // Where even this fails, time frees the key.
    giveBack: () => giveBack(relay.store, request, jobId).catch(() => undefined),
  });
}

/** What a submission does with its `Idempotency-Key`. */
interface HeldKey {
  /** Right before the job is inserted. @throws ApiError when another try has the key by now */
  confirm(): Promise<void>;
  /** When there is certainly no job: what was put right may be sent again at once. */
  giveBack(): Promise<void>;
}

async function insert(relay: Relay, id: string, order: Order, key?: HeldKey): Promise<JobRow> {
  const { model, webhookUrl, caller, submission } = order;
  const accepted = await relay.intake.accept(id, submission, caller).catch(async (error) => {
    await key?.giveBack();
    throw error;
  });
  try {
    await key?.confirm();
    return await relay.jobs.submit({ id, caller, model, webhookUrl, ...accepted });
  } catch (error) {
    // A commit whose answer was lost may have come through: then the job is there, needs its image,
    // and must be found by the next try with the same key.
    if (toApiError(error).status >= 500) throw error;
    // Of a job that never was. Best effort: the sweep finds what could not be removed.
    const files = { id, owner: caller.owner, image: accepted.image, outputKey: null };
    await relay.files.removeOf(files).catch(() => undefined);
    await key?.giveBack();
    throw error;
  }
}

/**
 * Synchronous mode: the answer is held until the video is there, or says that the task goes on
 * (v3-api.md, drop-in rule 5).
 */
async function holdAnswer(relay: Relay, job: JobRow, client: AbortSignal): Promise<ApiPrediction> {
  const last = (await waitForEnd(relay, job, relay.config.KINORA_SYNC_SECONDS, client)) ?? job;
  const prediction = await describeWithPosition(relay, last);
  if (isTerminal(last)) return prediction;
  return {
    ...prediction,
    // Also while it still waits for a worker: clients look for this one word.
    status: 'processing',
    code: predictionCodes.timeout,
    error: 'Sync mode timed out; the task goes on. Ask for its result at `urls.get`.',
  };
}
