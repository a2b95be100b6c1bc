import { type Endpoint, endpoints } from './endpoints';
import { apiErrorCodes, apiErrorSchema, describeApiError } from './errors';
import { errorExample, webhookExample } from './openapi-examples';
import {
  createSchemaConverter,
  errorSentence,
  type JsonSchema,
  operationObject,
  publicOperations,
} from './openapi-operations';
import { tags } from './openapi-texts';
import { predictionSchema, submitSchema, webhookBodySchema } from './prediction';

/** An OpenAPI 3.1 document: the parts that our code reads. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: JsonSchema;
  readonly paths: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>>;
  readonly webhooks: JsonSchema;
  readonly components: JsonSchema & { readonly schemas: Readonly<Record<string, JsonSchema>> };
  readonly [key: string]: unknown;
}

const whole = { type: 'integer', minimum: 0 };

const headers = {
  RequestId: {
    description: 'Quote it when you report an error; the log contains it too.',
    schema: { type: 'string' },
  },
  RateLimitLimit: { description: 'Requests per minute of this key.', schema: whole },
  RateLimitRemaining: { description: 'Requests that remain in this minute.', schema: whole },
  RateLimitReset: { description: 'Seconds until the limit is reset.', schema: whole },
  RetryAfter: { description: 'Seconds to wait before the next try.', schema: whole },
};

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A repeated request with the same key and body gets the first response, for 24 hours; with another body it is rejected.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
  example: 'order-1042',
};

const webhookHeader = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
});

const webhookParameters = [
  webhookHeader('webhook-id', 'The same for every attempt: use it to detect duplicates.'),
  webhookHeader('webhook-timestamp', 'Unix seconds of this attempt.'),
  webhookHeader(
    'webhook-signature',
    '`v3,` and the HMAC-SHA256 of `id.timestamp.body` in hex; the key is the secret without `whsec_`, as text.',
  ),
  webhookHeader('svix-id', 'As `webhook-id`.'),
  webhookHeader('svix-timestamp', 'As `webhook-timestamp`.'),
  webhookHeader(
    'svix-signature',
    '`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64; the key is the secret without `whsec_`, base64-decoded (Standard Webhooks).',
  ),
];

/**
 * The OpenAPI 3.1 document of all public operations, generated from the contract alone. The order of
 * keys is deterministic. Only the build, the documentation and tests import it, never the studio.
 */
export function buildOpenApi(): OpenApiDocument {
  const converter = createSchemaConverter({
    Prediction: predictionSchema,
    Submission: submitSchema,
    Error: apiErrorSchema,
    WebhookBody: webhookBodySchema,
  });
  const responses: Record<string, JsonSchema> = {};
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const name of publicOperations) {
    const { path, method }: Endpoint = endpoints[name];
    const item = paths[path] ?? {};
    item[method.toLowerCase()] = operationObject(name, converter, responses);
    paths[path] = item;
  }
  const webhookBody = converter.convert(webhookBodySchema, 'output');
  converter.convert(apiErrorSchema, 'output');
  const schemas = Object.fromEntries(
    Object.entries(converter.components).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  return {
    openapi: '3.1.0',
    info: {
      title: 'Kinora',
      version: '3',
      summary: 'One still image and a prompt become a 720p video, computed by a browser tab.',
      description: [
        'Every response is `{code, message, data}`; an error is `{code, message, error_code, request_id, details?}`.',
        'Every request carries `Authorization: Bearer <API_KEY>`.',
        'In a body, null in an optional field is the same as no such field, unless the schema allows no other fields.',
      ].join('\n\n'),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server' }],
    security: [{ key: [] }],
    tags,
    paths,
    webhooks: {
      predictionFinished: {
        post: {
          tags: ['Webhooks'],
          summary: 'A prediction has ended',
          description:
            'Sent once per prediction that ended, to the `webhook` of its submission. Up to three more attempts when the answer is not 2xx; duplicates are possible.',
          security: [],
          parameters: webhookParameters,
          requestBody: {
            required: true,
            content: { 'application/json': { schema: webhookBody, example: webhookExample } },
          },
          responses: {
            '2XX': { description: 'Received.' },
            '410': { description: 'Ends the attempts.' },
          },
        },
      },
    },
    components: {
      schemas: { ...schemas, Error: describedError(schemas.Error) },
      responses,
      headers,
      parameters: { IdempotencyKey: idempotencyKey },
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'A key from the Keys page or from `npm run keys -- create`.',
        },
      },
    },
  };
}

/** The document as text: the content of `public/openapi.json`. */
export function openApiText(): string {
  return `${JSON.stringify(buildOpenApi(), null, 2)}\n`;
}

/** The error schema with the meaning of every code, and an example. */
function describedError(schema: JsonSchema | undefined): JsonSchema {
  const lines = apiErrorCodes.map(
    (code) => `- ${describeApiError(code).status} ${errorSentence(code)}`,
  );
  return {
    ...schema,
    description: `An error.\n\n${lines.join('\n')}`,
    examples: [errorExample],
  };
}
