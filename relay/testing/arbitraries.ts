import fc from 'fast-check';

type Json = { readonly [key: string]: unknown };
type Resolve = (schema: Json) => Json;

/** Values for fields whose meaning a schema cannot tell, by the field's name. */
export type Meanings = Readonly<Record<string, fc.Arbitrary<unknown>>>;

/** Printable text of any script, and neither U+0000 nor halves of surrogate pairs. */
const text = (minLength = 0, maxLength = 60) =>
  fc
    .string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 60) })
    .filter((value) => value.length >= minLength && value.length <= maxLength);

const someJson = fc.jsonValue({ maxDepth: 3, stringUnit: 'grapheme' });

/** Values that fit a JSON Schema, its limits more often than what lies between. */
export function fitting(given: Json, resolve: Resolve, meanings: Meanings): fc.Arbitrary<unknown> {
  const schema = resolve(given);
  if (Array.isArray(schema.type) && !schema.enum) {
    const kinds = schema.type.map((type) => fitting({ ...schema, type }, resolve, meanings));
    return fc.oneof(...kinds);
  }
  if ('const' in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as unknown[]));
  const { minimum, maximum } = schema as { minimum?: number; maximum?: number };
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer': {
      const min = minimum ?? (schema.exclusiveMinimum === 0 ? 1 : -1_000_000);
      const max = maximum ?? 1_000_000;
      return fc.oneof(fc.constantFrom(min, max), fc.integer({ min, max }));
    }
    case 'number': {
      const [min, max] = [minimum ?? -1e6, maximum ?? 1e6];
      return fc.oneof(fc.constantFrom(min, max), fc.double({ min, max, noNaN: true }));
    }
    case 'string':
      return fittingText(schema);
    case 'array': {
      const maxLength = Math.min(Number(schema.maxItems ?? 5), 5);
      const minLength = Number(schema.minItems ?? 0);
      const item = fitting((schema.items ?? {}) as Json, resolve, meanings);
      return fc.array(item, { minLength, maxLength });
    }
    case 'object':
      return fittingObject(schema, resolve, meanings);
    default:
      return someJson;
  }
}

function fittingText(schema: Json): fc.Arbitrary<string> {
  if (schema.format === 'date-time') {
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-01-01') })
      .map((date) => date.toISOString());
  }
  if (schema.pattern === '\\S') return text(0).map((value) => `a${value}`);
  if (typeof schema.pattern === 'string') return fc.stringMatching(new RegExp(schema.pattern));
  return text(Number(schema.minLength ?? 0), Number(schema.maxLength ?? 60));
}

function fittingObject(schema: Json, resolve: Resolve, meanings: Meanings): fc.Arbitrary<unknown> {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  const fields = Object.entries(properties).map(
    ([name, property]): [string, fc.Arbitrary<unknown>] => [
      name,
      meanings[name] ?? fitting(property, resolve, meanings),
    ],
  );
  const required = (schema.required ?? []) as string[];
  if (fields.length === 0) return fc.dictionary(text(1, 10), someJson, { maxKeys: 4 });
  const model: Record<string, fc.Arbitrary<unknown>> = Object.fromEntries(fields);
  return fc.record(model, {
    requiredKeys: Object.keys(properties).filter((name) => required.includes(name)),
    noNullPrototype: true,
  });
}

/** A value and the path of one field in it that is to be spoilt. */
function fieldsOf(given: Json, resolve: Resolve, path: readonly string[] = []): [string[], Json][] {
  const schema = resolve(given);
  const own: [string[], Json] = [[...path], schema];
  const inside = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  return [own, ...inside.flatMap(([name, one]) => fieldsOf(one, resolve, [...path, name]))];
}

const hugeText = 'x'.repeat(100_000);
const odd: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  0.5,
  1e308,
  -1e308,
  2 ** 53,
  '',
  '5',
  hugeText,
  [],
  [[]],
  {},
  { length: 1 },
  '\0',
  '\ud800',
  '\udc00a',
];

/** Values that one field is replaced by: of other types, one beyond each limit, or merely strange. */
function spoilt(schema: Json): fc.Arbitrary<unknown> {
  const limits = [schema.minimum, schema.maximum].filter((limit) => typeof limit === 'number');
  const beyond = limits.flatMap((limit) => [limit - 1, limit + 1, limit + 0.5, String(limit)]);
  const many = typeof schema.maxItems === 'number' ? [Array(schema.maxItems + 1).fill('a')] : [];
  const long = typeof schema.maxLength === 'number' ? ['x'.repeat(schema.maxLength + 1)] : [];
  return fc.oneof(
    fc.constantFrom(...odd, ...beyond, ...many, ...long),
    fc.anything({ withNullPrototype: false, maxDepth: 2 }).filter((value) => {
      // What JSON cannot say becomes null or nothing: not every spoilt body stays spoilt.
      try {
        return JSON.stringify(value) !== undefined;
      } catch {
        return false;
      }
    }),
  );
}

/** Bodies of which one field, or the whole, was replaced or taken away. Some still fit: ajv decides. */
export function spoiling(
  schema: Json,
  resolve: Resolve,
  meanings: Meanings,
): fc.Arbitrary<unknown> {
  return fc
    .tuple(
      fitting(schema, resolve, meanings),
      fc
        .constantFrom(...fieldsOf(schema, resolve))
        .chain(([path, field]) =>
          fc.tuple(
            fc.constant(path),
            fc.oneof({ weight: 6, arbitrary: spoilt(field) }, fc.constant(undefined)),
          ),
        ),
    )
    .map(([body, [path, value]]) => replaced(body, path, value));
}

function replaced(body: unknown, path: readonly string[], value: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value ?? null;
  // An optional object may be null.
  const inside = (body as Json)[step] ?? {};
  // `undefined` is left out by JSON: that is how a field goes missing.
  return { ...(body as Json), [step]: rest.length === 0 ? value : replaced(inside, rest, value) };
}
