import { z } from 'zod';
import { type Endpoint, endpoints, isInternal, type OperationId } from './endpoints';
import { type ApiErrorCode, describeApiError } from './errors';
import { eventsExample, operationExamples } from './openapi-examples';
import { furtherErrors, operationTexts, type PublicOperation, tagOf } from './openapi-texts';

/** A JSON Schema of the dialect 2020-12, which OpenAPI 3.1 uses. */
export type JsonSchema = { readonly [keyword: string]: unknown };

type Side = 'body' | 'parameters' | 'output';

/** Converts schemas, and collects those that have a name in the document. */
export interface SchemaConverter {
  /**
   * The JSON Schema of a contract schema; named ones inside it become references.
   *
   * @param side `body` and `parameters`: what callers may send; in a body an optional field may be null.
   * `output`: what they receive
   */
  convert(schema: z.ZodType, side: Side): JsonSchema;
  /** Every named schema that was converted so far, by name. */
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/**
 * Converts with `z.toJSONSchema`. (The package zod-to-openapi patches Zod's classes and supports only
 * schemas created after that; the contract's schemas are created before, also in browsers.)
 *
 * @param names schemas that are listed under `components.schemas`
 */
export function createSchemaConverter(names: Readonly<Record<string, z.ZodType>>): SchemaConverter {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(names)) registry.add(schema, { id });
  const components: Record<string, JsonSchema> = {};
  return {
    components,
    convert(schema, side) {
      const tidy = (part: unknown) =>
        (side === 'body' ? withNulls(simplify(part, side)) : simplify(part, side)) as JsonSchema;
      const { $defs, ...whole } = z.toJSONSchema(schema, {
        io: side === 'output' ? 'output' : 'input',
        metadata: registry,
        override({ zodSchema, jsonSchema }) {
          const description = z.globalRegistry.get(zodSchema)?.description;
          if (description !== undefined) jsonSchema.description = description;
        },
      });
      for (const [name, definition] of Object.entries($defs ?? {})) {
        components[name] = tidy(definition);
      }
      return tidy(whole);
    },
  };
}

/** Allows null for every optional property but of strict objects, as the server does; each has one type. */
function withNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withNulls);
  if (typeof value !== 'object' || value === null) return value;
  const schema = Object.fromEntries(
    Object.entries(value).map(([keyword, content]) => [keyword, withNulls(content)]),
  );
  if (schema.type !== 'object' || !schema.properties) return schema;
  if (schema.additionalProperties === false) return schema;
  const required = (schema.required ?? []) as readonly string[];
  const properties = Object.entries(schema.properties as Readonly<Record<string, JsonSchema>>);
  schema.properties = Object.fromEntries(
    properties.map(([name, property]) => {
      return [name, required.includes(name) ? property : orNull(property)];
    }),
  );
  return schema;
}

/** A schema with one type that null fits as well; any other schema as it is. */
function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values } = schema;
  if (typeof type !== 'string') return schema;
  const nullable = { ...schema, type: [type, 'null'] };
  return Array.isArray(values) ? { ...nullable, enum: [...values, null] } : nullable;
}

/** Removes keywords that Zod writes and that carry no information for readers. */
function simplify(value: unknown, side: Side): unknown {
  if (Array.isArray(value)) return value.map((part) => simplify(part, side));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(
    ([key, content]) => !isRedundant(key, content, side),
  );
  const simplified: Record<string, unknown> = Object.fromEntries(
    entries.map(([key, content]) => [key, simplify(content, side)]),
  );
  if (typeof simplified.$ref === 'string') {
    simplified.$ref = simplified.$ref.replace('#/$defs/', '#/components/schemas/');
  }
  // Not every program that reads such documents understands `{}`.
  if (isEmpty(simplified.additionalProperties)) simplified.additionalProperties = true;
  // Zod's pattern repeats the format in 300 characters.
  if (simplified.format === 'date-time') delete simplified.pattern;
  return withoutNullBranch(simplified);
}

/** A choice between one type and null as that type or null: some programs refuse `null` as a branch. */
function withoutNullBranch(schema: JsonSchema): JsonSchema {
  const { anyOf, ...rest } = schema;
  const [branch, none, ...more] = Array.isArray(anyOf) ? (anyOf as readonly JsonSchema[]) : [];
  if (none?.type !== 'null' || more.length > 0 || typeof branch?.type !== 'string') return schema;
  return { ...orNull(branch), ...rest };
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function isRedundant(key: string, content: unknown, side: Side): boolean {
  // A property may have this name too; then `content` is a schema and not a string.
  if (key === '$schema' || key === 'id') return typeof content === 'string';
  if (key === 'minimum' || key === 'maximum') return Math.abs(Number(content)) >= 2 ** 53 - 1;
  // Later versions may add fields to a response; clients must accept them.
  if (key === 'additionalProperties') return content === false && side === 'output';
  return key === 'propertyNames';
}

/** Public operations in the table's order. */
export const publicOperations = (Object.keys(endpoints) as OperationId[]).filter(
  (name): name is PublicOperation => !isInternal(endpoints[name].path),
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
    ...(furtherErrors[name] ?? []),
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
  const parameters = parametersOf(name, converter);
  const body = requestBody(name, converter);
  return {
    operationId: name,
    tags: [tagOf(row.path)],
    summary: row.summary,
    description: `${operationTexts[name]}\n\nScope: \`${row.access}\`.`,
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
