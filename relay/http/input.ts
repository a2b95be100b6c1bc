import { z } from 'zod';
import { describeIssues } from '../../lib/contract';
import { ApiError } from '../../lib/contract/v3';
import { tooLarge } from '../files/blobs';

/**
 * Reads the JSON body of a request.
 *
 * @param maxBytes largest body, checked before and while it is read
 * @throws ApiError `UNSUPPORTED_MEDIA_TYPE`, `TOO_LARGE`, `INVALID_JSON`
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type !== 'application/json' && !type.endsWith('+json')) {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE');
  }
  const bytes = await readBytes(request, maxBytes);
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown;
  } catch {
    // No part of the body may be repeated: it may contain a prompt.
    throw new ApiError('INVALID_JSON');
  }
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request.body ?? []) {
      length += chunk.length;
      // Leaving the loop cancels the stream: the rest is not read.
      if (length > maxBytes) throw tooLarge(maxBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError('INVALID_JSON', 'The body ended too early.', { cause: error });
  }
  return Buffer.concat(chunks, length);
}

/**
 * Checks a value against its schema, and its texts for what PostgreSQL does not store.
 *
 * @throws ApiError `INVALID_PARAMETER` with every wrong field and what is allowed
 */
export function check(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value);
  const issues = parsed.success ? unstorable(parsed.data) : describeIssues(parsed.error);
  if (issues.length === 0) return parsed.data;
  const details = issues.slice(0, maxDetails).map(({ field, message }) => ({
    field: shortened(field) || 'body',
    message: shortened(message),
  }));
  // Clients show the message alone: the first wrong field is in it.
  throw new ApiError('INVALID_PARAMETER', details[0]?.message, { details });
}

/**
 * A body without the optional fields that are null: clients whose languages have typed records (Pydantic, Jackson,
 * Go) send every field. Null in a required field stays, and {@link check} refuses it, as in a strict object.
 *
 * @param schema of the body; its objects and lists are followed as deep as it goes
 */
export function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodNullable
  ) {
    return withoutNulls(schema.unwrap(), value);
  }
  if (schema instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((entry) => withoutNulls(schema.element, entry));
  }
  // A list in place of an object stays one, and is refused.
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!(schema instanceof z.ZodObject) || !isObject) return value;
  if (schema.def.catchall instanceof z.ZodNever) return value;
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  const fields = Object.entries(value).flatMap(([name, content]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field === undefined) return [[name, content]];
    const isAbsent = content === null && z.safeParse(field, undefined).success;
    return isAbsent ? [] : [[name, withoutNulls(field, content)]];
  });
  return Object.fromEntries(fields);
}

/** Most wrong fields in an answer, and the length of each text: both may come from the caller. */
const maxDetails = 50;
const maxEcho = 200;

/** A text of a caller as a message repeats it: at most 200 characters, and no half of a surrogate pair. */
export function shortened(text: string): string {
  if (text.length <= maxEcho) return text;
  return `${text.slice(0, maxEcho - 1).replace(/\p{Surrogate}$/u, '')}…`;
}

/** Deeper than any schema; deeper values would overflow the stack where they are serialised. */
const maxDepth = 32;

/** With the flag `u` a surrogate is only found where it stands alone. */
const unstorableText = /[\0\p{Surrogate}]/u;

/** `jsonb` refuses the character U+0000 and halves of surrogate pairs, and `text` refuses U+0000. */
function unstorable(
  value: unknown,
  path: readonly string[] = [],
): { field: string; message: string }[] {
  const field = path.join('.');
  if (typeof value === 'string' && unstorableText.test(value)) {
    return [{ field, message: `${field} must be text without U+0000 and lone surrogates.` }];
  }
  if (typeof value !== 'object' || value === null) return [];
  const [top = ''] = path;
  if (path.length >= maxDepth) return [{ field: top, message: `${top} is nested too deeply.` }];
  return Object.entries(value).flatMap(([key, child]) => unstorable(child, [...path, key]));
}
