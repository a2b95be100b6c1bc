import { openApiText } from '../../../lib/contract/v3';

/** A schema of the document, as far as it uses JSON Schema. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

export interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly description?: string;
  readonly required?: boolean;
  readonly schema: Schema;
  readonly example?: string | number;
}

export type Content = Readonly<Record<string, { schema: Schema; example?: unknown }>>;

export interface Answer {
  readonly $ref?: string;
  readonly description: string;
  readonly content?: Content;
}

interface Operation {
  readonly operationId?: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, Answer>>;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

/** The parts of our openapi.json that the page shows. */
interface Document {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Paths;
  readonly webhooks: Paths;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
  };
}

export const api: Document = JSON.parse(openApiText());

/** One request of the API, or one that the server sends to a webhook. */
export interface Endpoint extends Operation {
  readonly parameters: readonly Parameter[];
  readonly id: string;
  readonly method: string;
  /** Null for a webhook, whose address is the caller's. */
  readonly path: `/${string}` | null;
}

function endpointsOf(paths: Paths, isOurs: boolean): Endpoint[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId ?? path,
      method: method.toUpperCase(),
      path: isOurs ? `/${path.slice(1)}` : null,
      parameters: (operation.parameters ?? []).map((one) =>
        referred(one, api.components.parameters),
      ),
    })),
  );
}

/** What an object of the document stands for: itself, or what its `$ref` names. */
export function referred<T extends { readonly $ref?: string }>(
  one: T,
  components: Readonly<Record<string, T>>,
): T {
  return components[nameOf(one) ?? ''] ?? one;
}

/** Name of what a `$ref` names. */
export function nameOf({ $ref }: { readonly $ref?: string }): string | undefined {
  return $ref?.split('/').at(-1);
}

/** In the order of the document. */
export const apiEndpoints: readonly Endpoint[] = [
  ...endpointsOf(api.paths, true),
  ...endpointsOf(api.webhooks, false),
];
