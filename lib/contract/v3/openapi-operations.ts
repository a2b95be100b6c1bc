import type { z } from 'zod';
import { type Endpoint, endpoints, type OperationId } from './endpoints';
import { type ApiErrorCode, describeApiError } from './errors';
import { eventsExample, operationExamples } from './openapi-examples';
import type { JsonSchema, SchemaConverter } from './openapi-schemas';
import { operationTexts, type PublicOperation } from './openapi-texts';

/** Public operations in the table's order. */
export const publicOperations = (Object.keys(endpoints) as OperationId[]).filter(
  (name): name is PublicOperation => rowOf(name).internal !== true,
);

const submitErrors = [
  ...(['PROMPT_REFUSED', 'INVALID_WEBHOOK', 'INVALID_IMAGE'] as const),
  ...(['IDEMPOTENCY_MISMATCH', 'TOO_MANY_JOBS'] as const),
];

/** Every error code that a public operation can return, except `INTERNAL`. */
export function errorsOf(name: PublicOperation): ApiErrorCode[] {
  const { body, query, params, limit } = rowOf(name);
  return [
    ...(body ? (['INVALID_JSON', 'INVALID_PARAMETER', 'TOO_LARGE'] as const) : []),
    ...(query && !body ? (['INVALID_PARAMETER'] as const) : []),
    'UNAUTHORIZED',
    'FORBIDDEN',
    ...(params ? (['NOT_FOUND'] as const) : []),
    ...(body ? (['UNSUPPORTED_MEDIA_TYPE'] as const) : []),
    'RATE_LIMITED',
    'STORAGE_DOWN',
    'SHUTTING_DOWN',
    ...(limit === 'submit' ? submitErrors : []),
    ...(operationTexts[name].errors ?? []),
  ];
}

/**
 * The Operation Object of one row of the table.
 *
 * @param shared error responses that operations share, by name; those of this operation are added
 */
export function operationObject(
  name: PublicOperation,
  converter: SchemaConverter,
  shared: Record<string, JsonSchema>,
): JsonSchema {
  const row = rowOf(name);
  const { tag, description } = operationTexts[name];
  const parameters = parametersOf(name, converter);
  const body = requestBody(name, converter);
  return {
    operationId: name,
    tags: [tag],
    summary: row.summary,
    description: `${description}\n\nScope: \`${row.access}\`.`,
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: { '200': success(name, converter), ...errorResponses(name, shared) },
  };
}

function parametersOf(name: PublicOperation, converter: SchemaConverter): JsonSchema[] {
  const { params, query, translate } = rowOf(name);
  return [
    ...(params ? parametersIn('path', params, converter) : []),
    ...(query ? parametersIn('query', query, converter) : []),
    ...(translate ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : []),
  ];
}

const pathExamples: Readonly<Record<string, string>> = {
  provider: 'kinora',
  family: 'wan-2.2',
  variant: 'i2v-720p-lora',
};

function parametersIn(place: 'path' | 'query', schema: z.ZodObject, converter: SchemaConverter) {
  const { properties = {}, required = [] } = converter.convert(schema, 'parameters') as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    ...(typeof description === 'string' && { description }),
    ...(required.includes(name) && { required: true }),
    schema: rest,
    ...(place === 'path' && pathExamples[name] && { example: pathExamples[name] }),
  }));
}

function requestBody(name: PublicOperation, converter: SchemaConverter): JsonSchema | undefined {
  if (name === 'uploadBinary' || name === 'uploadBinaryLegacy') {
    const file = { type: 'string', contentMediaType: 'application/octet-stream' };
    const schema = { type: 'object', properties: { file }, required: ['file'] };
    return { required: true, content: { 'multipart/form-data': { schema } } };
  }
  const { body } = rowOf(name);
  if (!body) return undefined;
  const schema = converter.convert(body, 'body');
  const example = operationExamples[name].body;
  return { required: true, content: { 'application/json': { schema, example } } };
}

const responseHeaders = {
  'X-Request-Id': { $ref: '#/components/headers/RequestId' },
  'RateLimit-Limit': { $ref: '#/components/headers/RateLimitLimit' },
  'RateLimit-Remaining': { $ref: '#/components/headers/RateLimitRemaining' },
  'RateLimit-Reset': { $ref: '#/components/headers/RateLimitReset' },
};

function success(name: PublicOperation, converter: SchemaConverter): JsonSchema {
  const { answer } = rowOf(name);
  if (!answer) {
    const schema = { type: 'string', description: 'Server-sent events.' };
    return {
      description: 'A stream of events.',
      headers: { 'X-Request-Id': responseHeaders['X-Request-Id'] },
      content: { 'text/event-stream': { schema, example: eventsExample } },
    };
  }
  const schema = converter.convert(answer, 'output');
  const example = { code: 200, message: 'success', data: operationExamples[name].data };
  return {
    description: 'Success.',
    headers: responseHeaders,
    content: { 'application/json': { schema, example } },
  };
}

function errorResponses(
  name: PublicOperation,
  shared: Record<string, JsonSchema>,
): Record<string, JsonSchema> {
  const byStatus = new Map<number, ApiErrorCode[]>();
  for (const code of errorsOf(name)) {
    const { status } = describeApiError(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const responses = [...byStatus].toSorted(([a], [b]) => a - b);
  return Object.fromEntries(
    responses.map(([status, codes]) => {
      const key = codes.join('.');
      shared[key] ??= errorResponse(status, codes);
      return [String(status), { $ref: `#/components/responses/${key}` }];
    }),
  );
}

function errorResponse(status: number, codes: readonly ApiErrorCode[]): JsonSchema {
  return {
    description: codes.map(errorSentence).join('\n\n'),
    headers: {
      'X-Request-Id': responseHeaders['X-Request-Id'],
      ...((status === 429 || status === 503) && {
        'Retry-After': { $ref: '#/components/headers/RetryAfter' },
      }),
    },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
}

/** One line of the documentation: the code, what is wrong, and the remedy. */
export function errorSentence(code: ApiErrorCode): string {
  const { message, remedy } = describeApiError(code);
  return `\`${code}\`: ${message} ${remedy}`;
}

function rowOf(name: OperationId): Endpoint {
  return endpoints[name];
}
