import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import type { OpenApiDocument } from '../../lib/contract/v3';

type Json = { readonly [key: string]: unknown };

/** One operation of the document, with what fuzz tests need of it. */
export interface DocumentedOperation {
  readonly id: string;
  readonly method: string;
  /** Template such as `/api/v3/predictions/{id}`. */
  readonly path: string;
  /** Schema of the JSON body; absent where there is none. */
  readonly body?: Json;
  readonly query: readonly { readonly name: string; readonly schema: Json }[];
  /** Whether 200 is answered with JSON. */
  readonly answersJson: boolean;
}

/** Judges requests and answers by the published document alone. */
export interface Checker {
  readonly operations: readonly DocumentedOperation[];
  /** Schema behind a reference of the document; any other schema is itself. */
  resolve(schema: Json): Json;
  fitsBody(operation: DocumentedOperation, body: unknown): boolean;
  /** What is wrong with an answer of status 200; empty when it fits. */
  answerFaults(operation: DocumentedOperation, answer: unknown): string[];
  /** What is wrong with the body of a refusal. */
  errorFaults(answer: unknown): string[];
}

const jsonType = 'application/json';
const root = 'kinora:/openapi';

/** Compiles the schemas of `public/openapi.json` with ajv, formats included. */
export function createChecker(document: OpenApiDocument): Checker {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: root });
  const compiled = new Map<string, ValidateFunction>();
  const validator = (...pointer: string[]): ValidateFunction => {
    const steps = pointer.map((step) => step.replaceAll('~', '~0').replaceAll('/', '~1'));
    const $ref = `${root}#/${steps.map(encodeURIComponent).join('/')}`;
    const known = compiled.get($ref) ?? ajv.compile({ $ref });
    compiled.set($ref, known);
    return known;
  };
  const faults = (validate: ValidateFunction, value: unknown): string[] =>
    validate(value)
      ? []
      : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  const at = (operation: DocumentedOperation) => ['paths', operation.path, operation.method];

  return {
    operations: Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => describe(path, method, operation)),
    ),
    resolve(schema) {
      const name = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref ?? ''))?.[1];
      return name === undefined ? schema : (document.components.schemas[name] ?? {});
    },
    fitsBody: (operation, body) =>
      validator(...at(operation), 'requestBody', 'content', jsonType, 'schema')(body),
    answerFaults: (operation, answer) =>
      faults(
        validator(...at(operation), 'responses', '200', 'content', jsonType, 'schema'),
        answer,
      ),
    errorFaults: (answer) => faults(validator('components', 'schemas', 'Error'), answer),
  };
}

function describe(path: string, method: string, operation: Json): DocumentedOperation {
  const { operationId, requestBody, parameters, responses } = operation as {
    operationId: string;
    requestBody?: { content: Record<string, { schema: Json } | undefined> };
    parameters?: { in?: string; name: string; schema: Json }[];
    responses: Record<string, { content?: Json } | undefined>;
  };
  const body = requestBody?.content[jsonType]?.schema;
  return {
    id: operationId,
    method,
    path,
    ...(body && { body }),
    query: (parameters ?? []).filter((parameter) => parameter.in === 'query'),
    answersJson: jsonType in (responses['200']?.content ?? {}),
  };
}
