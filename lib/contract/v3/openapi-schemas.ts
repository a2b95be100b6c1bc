import { z } from 'zod';

/** A JSON Schema of the dialect 2020-12, as OpenAPI 3.1 takes it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Schemas that have a name in the document, each said once. */
export interface SchemaBook {
  /**
   * The JSON Schema of a contract schema; named ones inside it become references.
   *
   * @param side what callers may send, or what they get
   */
  convert(schema: z.ZodType, side: 'input' | 'output'): JsonSchema;
  /** Every named schema that was met, by name. */
  readonly components: Readonly<Record<string, JsonSchema>>;
}

/**
 * Makes JSON Schemas with Zod's own converter. (zod-to-openapi patches Zod's classes, and knows only
 * schemas that are made after that; the contract's are older, and the browser has them too.)
 *
 * @param names schemas that get a place under `components.schemas`
 */
export function openSchemaBook(names: Readonly<Record<string, z.ZodType>>): SchemaBook {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(names)) registry.add(schema, { id });
  const components: Record<string, JsonSchema> = {};
  return {
    components,
    convert(schema, side) {
      const { $defs, ...whole } = z.toJSONSchema(schema, {
        io: side,
        metadata: registry,
        override({ zodSchema, jsonSchema }) {
          const description = z.globalRegistry.get(zodSchema)?.description;
          if (description !== undefined) jsonSchema.description = description;
        },
      });
      for (const [name, definition] of Object.entries($defs ?? {})) {
        components[name] = tidy(definition) as JsonSchema;
      }
      return tidy(whole) as JsonSchema;
    },
  };
}

/** Keywords that Zod writes and that tell a reader nothing. */
function tidy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(tidy);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key, content]) => !isNoise(key, content));
  const tidied: Record<string, unknown> = Object.fromEntries(
    entries.map(([key, content]) => [key, tidy(content)]),
  );
  if (typeof tidied.$ref === 'string') {
    tidied.$ref = tidied.$ref.replace('#/$defs/', '#/components/schemas/');
  }
  // The same said in the way that Scalar reads: anything.
  if (isEmpty(tidied.additionalProperties)) tidied.additionalProperties = true;
  // The pattern repeats, in 300 characters, what the format says.
  if (tidied.format === 'date-time') delete tidied.pattern;
  return tidied;
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function isNoise(key: string, content: unknown): boolean {
  // A property may have such a name too; then its content is a schema.
  if (key === '$schema' || key === 'id') return typeof content === 'string';
  if (key === 'minimum' || key === 'maximum') return Math.abs(Number(content)) >= 2 ** 53 - 1;
  // An answer may grow; a client must not refuse it for that.
  if (key === 'additionalProperties') return content === false;
  return key === 'propertyNames';
}
