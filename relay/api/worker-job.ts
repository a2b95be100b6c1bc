import type { WorkerJob, WorkerLora } from '../../lib/contract/v3';
import type { Relay } from '../relay';
import type { JobLora, JobRow } from '../store/schema';

/** A claimed job as its worker gets it; null for a row that lacks what a claimed job has. */
export function toWorkerJob({ config, files }: Relay, job: JobRow): WorkerJob | null {
  const { leaseToken, leaseUntil, deadline, image } = job;
  if (leaseToken === null || leaseUntil === null || deadline === null || image === null)
    return null;
  const { enable_prompt_optimizer, enable_safety_checker, image: _, ...parameters } = job.input;
  return {
    id: job.id,
    attempt: job.attempt,
    lease_token: leaseToken,
    lease_until: leaseUntil.toISOString(),
    deadline: deadline.toISOString(),
    heartbeat_interval_ms: config.KINORA_HEARTBEAT_SECONDS * 1000,
    model: job.model,
    // Drawn at submission: every attempt makes the same video.
    parameters: { ...parameters, seed: job.seed },
    enable_prompt_optimizer,
    enable_safety_checker,
    image: { url: files.links.workerImage(job), type: image.type, bytes: image.bytes },
    loras: job.loras.map((lora, index) => toWorkerLora(files.links.workerLora(job, index), lora)),
  };
}

/** Hub files are fetched by the worker itself; everything else comes through the relay. */
function toWorkerLora(url: string, lora: JobLora): WorkerLora {
  const { path, scale } = lora;
  if (lora.from !== 'hub') return { path, scale, from: 'relay', url };
  return { path, scale, from: 'hub', repository: lora.repository, file: lora.file };
}
