import { createHash } from 'node:crypto';
import { ApiError, type Submission } from '../../lib/contract/v3';

/** The key of a request's header; null where there is none. @throws ApiError `INVALID_PARAMETER` */
export function idempotencyKeyOf(request: Request): string | null {
  const key = request.headers.get('idempotency-key');
  if (key === null || key === '') return null;
  if (key.length <= 255) return key;
  throw new ApiError('INVALID_PARAMETER', 'Idempotency-Key must have at most 255 characters.', {
    details: [{ field: 'Idempotency-Key', message: 'It must have at most 255 characters.' }],
  });
}

/** SHA-256 over model, webhook and the body as it was understood: the order of fields does not count. */
export function hashOf(model: string, webhookUrl: string | null, submission: Submission): string {
  return createHash('sha256')
    .update(JSON.stringify([model, webhookUrl, submission]))
    .digest('hex');
}
