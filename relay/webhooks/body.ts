import { randomBytes } from 'node:crypto';
import type { WebhookBody } from '../../lib/contract/v3';
import type { OutboxRow } from '../jobs';
import type { Links } from '../relay';
import type { JobRow } from '../store/schema';

/** The addresses that a webhook tells. */
export type WebhookLinks = Pick<Links, 'prediction' | 'output'>;

/** What a webhook says of a finished job; null for one that has not ended. */
export function webhookBody(job: JobRow, links: WebhookLinks): WebhookBody | null {
  if (job.status !== 'completed' && job.status !== 'failed') return null;
  const output = job.status === 'completed' ? links.output(job) : null;
  const outputs = output === null ? [] : [output];
  return {
    id: job.id,
    model: job.model,
    input: { ...job.input },
    ...(job.status === 'completed' && { outputs }),
    urls: { get: links.prediction(job.id) },
    has_nsfw_contents: outputs.map(() => false),
    status: job.status,
    created_at: job.createdAt.toISOString(),
    error: job.error,
  };
}

/**
 * The outbox row of a terminal status, for its transaction. Its body is what every attempt signs and
 * sends, so that a retry says the same as the first attempt.
 *
 * @param firstDelay seconds before the first attempt
 */
export function createOutboxRow(links: WebhookLinks, firstDelay: number): OutboxRow {
  return (job) => {
    if (job.webhookUrl === null) return null;
    const body = webhookBody(job, links);
    if (body === null) return null;
    return {
      id: `msg_${randomBytes(16).toString('hex')}`,
      jobId: job.id,
      owner: job.owner,
      url: job.webhookUrl,
      body: JSON.stringify(body),
      // Without a delay the database's own clock, which the deliveries are chosen by, sets it.
      ...(firstDelay > 0 && { nextAt: new Date(Date.now() + firstDelay * 1000) }),
    };
  };
}
