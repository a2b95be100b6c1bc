import { z } from 'zod';

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
