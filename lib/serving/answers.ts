import {
  ApiError,
  type ApiErrorCode,
  apiErrorSchema,
  describeApiError,
} from '../contract/v3/errors';
import { Unreachable } from './unreachable';

/** Passes a success. @throws ApiError the relay's own; Unreachable for anything else that is no success */
export async function checkAnswer(response: Response): Promise<void> {
  if (response.ok) return;
  const text = await response.text().catch(() => '');
  const known = apiErrorSchema.safeParse(jsonOf(text));
  if (known.success) throw toApiError(known.data.error_code, known.data.message, response);
  if (response.status === 401) throw new ApiError('UNAUTHORIZED');
  if (response.status === 403) throw new ApiError('FORBIDDEN');
  if (response.status === 404 || response.status === 410) throw new ApiError('NOT_FOUND');
  throw new Unreachable(`the server answers ${response.status}`);
}

/** Why a call failed: what the relay said, or that it did not answer. */
export function whyNot(thrown: unknown): Error {
  if (thrown instanceof Unreachable || thrown instanceof ApiError) return thrown;
  const late = thrown instanceof DOMException && thrown.name === 'TimeoutError';
  const reason = late ? 'the server does not answer in time' : 'the server cannot be reached';
  return new Unreachable(reason, { cause: thrown });
}

/** The relay writes sentence and remedy into one message; here they are two again. */
function toApiError(code: ApiErrorCode, message: string, response: Response): ApiError {
  const { remedy } = describeApiError(code);
  const sentence = message.endsWith(` ${remedy}`) ? message.slice(0, -remedy.length - 1) : message;
  const wait = response.headers.get('retry-after');
  return new ApiError(code, sentence, { ...(wait && { headers: { 'Retry-After': wait } }) });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
