import { promptOptimizationSchema, uncheckedSafety } from '../../../lib/contract';
import {
  ApiError,
  type ClaimAnswer,
  type Completion,
  type ImageField,
  type WorkerIdentity,
  type WorkerJob,
} from '../../../lib/contract/v3';
import { familiesOf, modelsFor } from '../../config';
import { jpegsOf, keepPictures, takeVideo } from '../../files/outputs/video';
import type { ClaimedJob } from '../../jobs';
import type { Relay } from '../../open';
import type { JobImage, JobLora, JobRow } from '../../store/schema';
import type { Handlers } from './index';

function toWorkerJob({ config, files }: Relay, job: ClaimedJob): WorkerJob {
  const { leaseToken, leaseUntil, deadline, image, lastImage } = job;
  const { enable_prompt_optimizer, enable_safety_checker, ...input } = job.input;
  const { enable_base64_output: _base64, webhook_events: _events, ...rest } = input;
  const { image: _image, last_image: _last, ...parameters } = rest;
  const told = (lora: JobLora) => {
    const { path, scale, noise } = lora;
    return { path, scale, ...(noise && { noise }) };
  };
  const imageOf = (field: ImageField, { type, bytes }: JobImage) => ({
    url: files.links.workerImage(job, field),
    type,
    bytes,
  });
  return {
    id: job.id,
    attempt: job.attempt,
    lease_token: leaseToken,
    lease_until: leaseUntil.toISOString(),
    deadline: deadline.toISOString(),
    heartbeat_interval_ms: config.KINORA_HEARTBEAT_SECONDS * 1000,
    model: job.model,
    // Chosen at submission: every attempt makes the same video.
    parameters: { ...parameters, loras: job.loras.map(told), seed: job.seed },
    enable_prompt_optimizer,
    enable_safety_checker,
    image: imageOf('image', image),
    ...(lastImage && { last_image: imageOf('last_image', lastImage) }),
    loras: job.loras.map((lora, index) => {
      // Hub files are fetched by the worker itself; everything else comes through the relay.
      if (lora.from !== 'hub') {
        return { ...told(lora), from: 'relay', url: files.links.workerLora(job, index) };
      }
      return { ...told(lora), from: 'hub', repository: lora.repository, file: lora.file };
    }),
  };
}

/** When a worker repeats a claim that could not be held, in milliseconds. */
const retryAfterMs = 5000;
/** The part of its time by which a claim may be held for less. */
const holdSpread = 0.4;

/** The worker protocol. */
export const workerHandlers = {
  workerMe: async ({ config, heldClaims }, { caller }) => {
    return {
      token: caller.keyId,
      owner: caller.owner,
      shared: caller.shared,
      accepts_models: [
        ...new Set([...familiesOf(config).keys()].flatMap((family) => modelsFor(config, family))),
      ],
      waiting: await heldClaims.waiting(caller),
    } satisfies WorkerIdentity;
  },

  /**
   * `POST /api/worker/claim`: answered at once where there is a job, else held until one comes or the time
   * is over. A node that is being stopped gives nothing away.
   */
  claim: async (relay, { caller, body, request, requestId }) => {
    const { wait_seconds: waitSeconds, paused, ...worker } = body;
    const { heldClaims, jobs, stopping, workers } = relay;
    if (stopping.aborted) throw new ApiError('SHUTTING_DOWN');
    workers.seen(caller, worker, paused ? 'paused' : 'idle');
    const { signal } = request;
    // Workers that have come together do not come together again.
    const ms = waitSeconds * 1000 * (1 - holdSpread * Math.random());
    const job = await heldClaims.claim({ caller, worker, paused }, ms, signal);
    if (job && !signal.aborted) {
      workers.seen(caller, worker, 'busy');
      return { job: toWorkerJob(relay, job), skipped: {}, retry_after_ms: 0 } satisfies ClaimAnswer;
    }
    // The worker has disconnected.
    if (job) await jobs.release(job.id, job.leaseToken);
    if (signal.aborted && !heldClaims.isHeld({ caller, worker })) {
      await logFailure(relay, requestId, workers.disconnected(caller, worker));
    }
    if (stopping.aborted) throw new ApiError('SHUTTING_DOWN');
    const skipped = paused || signal.aborted ? {} : await heldClaims.skippedFor({ caller, worker });
    const isEarly = job !== null || heldClaims.isFull;
    const retry_after_ms = isEarly ? retryAfterMs : 0;
    return { job: null, skipped, retry_after_ms } satisfies ClaimAnswer;
  },

  /** `POST …/heartbeat`: after a cancel the answer is 409 `LEASE_LOST`. */
  heartbeat: async (relay, { params, body, caller, requestId }) => {
    const { lease_token: token, ...progress } = body;
    const answer = await relay.jobs.heartbeat(params.id, token, progress, caller.keyId);
    await logFailure(relay, requestId, relay.workers.heartbeat(params.id));
    return answer;
  },

  /** `POST …/lease`: whether the lease is still valid. */
  lease: async (relay, { params, body, caller }) => {
    const { lease_token: token } = body;
    const { leaseUntil, deadline } = await relay.jobs.lease(params.id, token, caller.keyId);
    return { lease_until: leaseUntil?.toISOString(), deadline: deadline?.toISOString() };
  },

  /**
   * `POST …/complete`: report and uploaded file are checked before the status changes. A wrong one leaves
   * the lease as it is: the worker uploads again, or fails.
   */
  complete: async (relay, { params, body, caller, requestId }) => {
    const { id } = params;
    const { lease_token: token, pictures: sent, ...result } = body;
    const earlier = await relay.jobs.get(id);
    const isOwn = earlier?.leaseToken === token && earlier.workerToken === caller.keyId;
    // The same completion again, after its first answer was lost.
    if (isOwn && earlier.status === 'completed' && earlier.outputSha256 === result.sha256) {
      return { status: earlier.status };
    }
    const job = await relay.jobs.lease(id, token, caller.keyId);
    const report = checkReport(job, result);
    const pictures = await jpegsOf(sent, report.safety);
    const video = { jobId: id, owner: job.owner, sha256: result.sha256 };
    const { key: outputKey } = await takeVideo(relay.files, video, job.input, result.bytes);
    const stored = { ...result, ...report, outputKey };
    const completed = await relay.jobs.complete(id, token, stored, caller.keyId);
    const warn = (sentence: string) => (err: unknown) =>
      relay.log.warn({ request_id: requestId, err }, sentence);
    await keepPictures(relay.files, completed, pictures).catch(warn('a picture was not stored'));
    await relay.files.rows
      .give(outputKey, completed)
      .catch(warn('a video still expires with the time of an attempt'));
    return { status: completed.status };
  },

  fail: async (relay, { params, body, caller }) => {
    const { lease_token: token, ...failure } = body;
    const { status } = await relay.jobs.fail(params.id, token, failure, caller.keyId);
    return { status };
  },

  release: async (relay, { params, body, caller }) => {
    const { status } = await relay.jobs.release(params.id, body.lease_token, caller.keyId);
    return { status };
  },
} as const satisfies Handlers;

/** Logs a failed write to the list of workers, which is for people: the request itself goes on. */
async function logFailure(relay: Relay, requestId: string, writing: Promise<void>): Promise<void> {
  await writing.catch((err: unknown) => {
    relay.log.warn({ request_id: requestId, err }, 'the list of workers was not updated');
  });
}

/** What a worker reports of the check of its video and of the prompt. */
type Report = Pick<Completion, 'safety' | 'prompt_optimization'>;

/**
 * Compares a worker's report with what its job asked for. It finds mistakes only: a relay cannot verify a
 * tab's word.
 *
 * @returns what is stored
 * @throws ApiError `INVALID_PARAMETER` where the report contradicts the job or itself
 */
export function checkReport(
  { input, seed: jobSeed }: Pick<JobRow, 'input' | 'seed'>,
  { seed, safety, prompt_optimization }: Report & Pick<Completion, 'seed'>,
): Report {
  if (seed !== jobSeed) throw refused('seed', `${jobSeed}, the seed of the job.`);
  const { enable_safety_checker: isAsked, enable_prompt_optimizer: isOptimized, prompt } = input;
  const problem = verdictProblem(safety, isAsked);
  if (problem !== null) throw refused('safety.status', problem);
  if (!isOptimized && prompt_optimization !== null) {
    throw refused('prompt_optimization', 'null: the job does not ask for it.');
  }
  // A worker that cannot optimise says nothing.
  const unavailable = { status: 'unavailable', original: prompt, text: prompt };
  const told = prompt_optimization ?? promptOptimizationSchema.parse(unavailable);
  if (told.original !== prompt) {
    throw refused('prompt_optimization.original', 'the prompt of the job.');
  }
  return {
    // A check that was not asked for and did not run is off, whatever the worker calls it.
    safety: isAsked ? safety : uncheckedSafety('off'),
    prompt_optimization: isOptimized ? told : null,
  };
}

/** What is wrong with the report of a check; null where it may be right. */
function verdictProblem(safety: Report['safety'], isAsked: boolean): string | null {
  const { status, reason, score, frames, threshold, model, sha256 } = safety;
  if (!isAsked) {
    return status === 'off' || status === 'unverified' ? null : 'off: the job asks for no check.';
  }
  if (status === 'off') return 'not off: the job asks for the check.';
  if (status === 'unverified') return reason === 'failed' ? null : 'unverified because it failed.';
  if (model === null || sha256 === null) return `${status} with the checker and its SHA-256.`;
  if (score === null || frames.length === 0) return `${status} with a score and those of frames.`;
  const expected = score >= threshold ? 'flagged' : 'clear';
  return status === expected ? null : `${expected}, as the score ${score} says.`;
}

function refused(field: string, message: string): ApiError {
  const sentence = 'The report of the worker contradicts its job.';
  return new ApiError('INVALID_PARAMETER', sentence, {
    details: [{ field, message: `It must be ${message}` }],
  });
}
