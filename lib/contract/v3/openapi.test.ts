import { readFile } from 'node:fs/promises';
import { Ajv2020 } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { importTestPackage } from '../../cli/dev/test-packages';
import { endpoints, type OperationId } from './endpoints';
import { apiErrorCodes, describeApiError } from './errors';
import { buildOpenApi, openApiText } from './openapi';

/** The part of npm `@scalar/openapi-parser` that is used. */
interface OpenApiParser {
  validate(text: string): Promise<{ valid: boolean; version?: string; errors?: unknown }>;
}

/** The parts of the document that the tests read. */
interface Media {
  readonly schema: object;
  readonly example?: unknown;
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly parameters?: readonly { in?: string; name?: string; required?: boolean }[];
  readonly requestBody?: { content: Record<string, Media> };
  readonly responses: Record<string, { content?: Record<string, Media>; $ref?: string }>;
}

const document = buildOpenApi();
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    path,
    method,
    operation: operation as unknown as Operation,
  })),
);

test('the committed public/openapi.json is up to date', async () => {
  const committed = await readFile(
    new URL('../../../public/openapi.json', import.meta.url),
    'utf8',
  );
  expect(committed === openApiText(), 'stale: run `npm run prepare:assets`').toBe(true);
});

test('the document is valid OpenAPI 3.1, and every reference resolves', async () => {
  const { validate } = await importTestPackage<OpenApiParser>(
    '@scalar/openapi-parser/dist/index.js',
  );
  const { valid, version, errors } = await validate(openApiText());
  expect(errors).toEqual([]);
  expect({ valid, version }).toEqual({ valid: true, version: '3.1' });
});

test('the document has every public operation and no internal one', () => {
  const expected = (Object.keys(endpoints) as OperationId[]).filter(
    (name) => !/^\/api\/(admin|worker)\//.test(endpoints[name].path),
  );
  expect(operations.map(({ operation }) => operation.operationId).sort()).toEqual(expected.sort());
  for (const { path, method, operation } of operations) {
    const row = endpoints[operation.operationId as OperationId];
    expect({ path, method: method.toUpperCase() }).toEqual({ path: row.path, method: row.method });
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    const declared = operation.parameters?.filter((parameter) => parameter.in === 'path') ?? [];
    expect(declared.map(({ name }) => name)).toEqual(inPath);
    expect(declared.every(({ required }) => required)).toBe(true);
  }
});

test('every JSON body has an example that fits its schema', () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: 'doc:/' });
  const fits = (media: Media | undefined, name: string) => {
    expect(media?.example, `${name} has an example`).toBeDefined();
    const local = JSON.parse(JSON.stringify(media?.schema).replaceAll('"#/', '"doc:/#/'));
    const check = ajv.compile(local);
    expect(check(media?.example) ? [] : check.errors, name).toEqual([]);
  };
  for (const { operation } of operations) {
    const { operationId, requestBody, responses } = operation;
    const body = requestBody?.content['application/json'];
    if (body) fits(body, `body of ${operationId}`);
    const answer = responses['200']?.content?.['application/json'];
    if (answer) fits(answer, `answer of ${operationId}`);
    else expect(responses['200']?.content).toHaveProperty('text/event-stream');
  }
  const { post } = document.webhooks.predictionFinished as { post: Operation };
  fits(post.requestBody?.content['application/json'], 'webhook');
  const { examples = [], ...error } = document.components.schemas.Error as { examples?: unknown[] };
  fits({ schema: error, example: examples[0] }, 'error');
});

test('the document explains every error code', () => {
  for (const code of apiErrorCodes) {
    const { status, message } = describeApiError(code);
    expect(document.components.schemas.Error?.description).toContain(
      `- ${status} \`${code}\`: ${message}`,
    );
  }
});

test('every 429 and 503 has Retry-After', () => {
  const shared = document.components.responses as Record<string, { headers: object }>;
  for (const { operation } of operations) {
    for (const [status, { $ref = '' }] of Object.entries(operation.responses)) {
      if (status === '200') continue;
      const { headers } = shared[$ref.split('/').at(-1) ?? ''] ?? { headers: {} };
      expect('Retry-After' in headers, `${operation.operationId} ${status}`).toBe(
        status === '429' || status === '503',
      );
    }
  }
});

test('every parameter of a submission has a description, its range and default', () => {
  const { properties, required } = document.components.schemas.Submission as {
    properties: Record<string, { description?: string; default?: unknown }>;
    required: string[];
  };
  expect(required.sort()).toEqual(['image', 'prompt']);
  for (const [name, schema] of Object.entries(properties)) {
    expect(schema.description, name).toMatch(/\S/);
    // Without it the webhook is the one that clients of this API expect.
    if (name === 'webhook_events') continue;
    // Answers to clients that never asked for these do not name them.
    if (['loop', 'last_image', 'last_image_at', 'upscale', 'smooth'].includes(name)) continue;
    if (!required.includes(name)) expect(schema, name).toHaveProperty('default');
  }
  expect(properties.num_inference_steps).toMatchObject({ minimum: 1, maximum: 40, default: 30 });
  expect(properties.seed).toMatchObject({ minimum: -1, maximum: 9_999_999_999, default: -1 });
});

test('the document contains no host name', () => {
  expect(document.servers).toEqual([{ url: '/', description: 'This server' }]);
  expect(openApiText()).not.toMatch(/localhost|127\.0\.0\.1/);
});
