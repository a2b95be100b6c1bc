/** A NUL, or half of a surrogate pair: JSON allows both, PostgreSQL's text and jsonb neither. */
const unstorable =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is the character meant
  /\u0000|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g;

/** Text as the database can keep it: what it cannot becomes U+FFFD, as a decoder would have it. */
export function storable(text: string): string {
  return text.replace(unstorable, '\uFFFD');
}

/** A JSON value whose texts, names included, the database can keep. */
export function storableJson<Value>(value: Value): Value;
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storable(value);
  if (Array.isArray(value)) return value.map((item) => storableJson(item));
  if (value === null || typeof value !== 'object' || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [storable(name), storableJson(item)]),
  );
}
