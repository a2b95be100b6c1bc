import type { z } from 'zod';
import { KinoraError } from '../../contract';
import type { ModelFolder } from '../../weights';

/**
 * Reads and checks a configuration file of a model folder.
 *
 * @throws KinoraError `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID`; `MODEL_CONFIG_INVALID` naming the field
 */
export async function readConfig<T extends z.ZodType>(
  folder: ModelFolder,
  path: string,
  schema: T,
): Promise<z.output<T>> {
  const json = await folder.json(path);
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path ?? [];
  const actual = field.reduce<unknown>((value, key) => member(value, key), json);
  const expectation = (issue?.message ?? 'invalid').replace(/^Invalid (input|option): /, '');
  throw invalidConfig(path, field.join('.') || 'the file', actual, expectation);
}

function member(value: unknown, key: PropertyKey): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** @returns KinoraError `MODEL_CONFIG_INVALID` naming a field of a configuration file and its value */
export function invalidConfig(
  file: string,
  field: string,
  actual: unknown,
  expectation: string,
): KinoraError {
  const is = actual === undefined ? 'is absent' : `is ${JSON.stringify(actual)}`;
  return new KinoraError('MODEL_CONFIG_INVALID', `${file}: ${field} ${is}, ${expectation}.`);
}
