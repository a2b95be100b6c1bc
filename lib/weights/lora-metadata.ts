import { z } from 'zod';
import { KinoraError, toKinoraError } from '../contract';
import { openSafetensors, type SafetensorsCheckpoint } from './formats/checkpoint';
import { SourceChanged, type WeightFile } from './formats/source';

/**
 * What reading a LoRA throws, as an error of that file: it is not of the model, so that neither the model nor the
 * device is to blame for it.
 *
 * @throws KinoraError `LORA_INVALID`, and what says nothing of the content: the hub's errors, a cancel
 */
export async function ofLora<T>(name: string, reading: Promise<T>): Promise<T> {
  return reading.catch((cause: unknown) => {
    const { code, message } = toKinoraError(cause);
    if (cause instanceof SourceChanged || !/^(MODEL|TENSOR|INTERNAL)/.test(code)) throw cause;
    const sentence = `The LoRA "${name}" cannot be read: ${message}`;
    throw new KinoraError('LORA_INVALID', sentence, { cause });
  });
}

/** Opens the file of a LoRA. @throws KinoraError as {@link ofLora} */
export function openLoraFile(file: WeightFile): Promise<SafetensorsCheckpoint> {
  return ofLora(file.name, openSafetensors(file));
}

/** Keys under which tools write the words that call a LoRA forth. */
const wordKeys = [
  'modelspec.trigger_phrase',
  'modelspec.trigger_words',
  'trigger_phrase',
  'trigger_words',
  'trigger_word',
  'ss_trigger_words',
  'instance_prompt',
  'activation text',
];

/** Tags listed at most: a whole vocabulary is no help. */
const mostTags = 5;

/** kohya's count of the tags of its training images, by folder. */
const frequencySchema = z.record(z.string(), z.record(z.string(), z.number()));

/**
 * The trigger words of a LoRA by its metadata: those that its maker named, else the tags that each
 * training image of kohya's tools had.
 */
export function triggerWords(metadata: ReadonlyMap<string, string>): readonly string[] {
  const named = wordKeys.flatMap((key) => wordsOf(metadata.get(key) ?? ''));
  if (named.length > 0) return [...new Set(named)];
  return commonTags(metadata.get('ss_tag_frequency') ?? '{}');
}

/** Words as a JSON list, or between commas. */
function wordsOf(text: string): string[] {
  const list = z.array(z.string()).safeParse(jsonOf(text));
  const words = list.success ? list.data : text.split(',');
  return words.map((word) => word.trim()).filter((word) => word !== '');
}

function commonTags(text: string): readonly string[] {
  const parsed = frequencySchema.safeParse(jsonOf(text));
  if (!parsed.success) return [];
  const counts = new Map<string, number>();
  for (const tags of Object.values(parsed.data)) {
    for (const [tag, count] of Object.entries(tags)) {
      counts.set(tag.trim(), (counts.get(tag.trim()) ?? 0) + count);
    }
  }
  const most = Math.max(0, ...counts.values());
  const common = [...counts].filter(([tag, count]) => tag !== '' && count === most);
  // If all tags are equally frequent, none of them stands out.
  return common.length > mostTags ? [] : common.map(([tag]) => tag);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Metadata of other programs need not be JSON.
    return undefined;
  }
}

const number = z.union([z.number(), z.string().transform(Number).pipe(z.number())]);
const flag = z.union([z.boolean(), z.stringbool()]);
const fromText = (value: unknown) => (typeof value === 'string' ? jsonOf(value) : value);
const table = z.preprocess(fromText, z.record(z.string(), z.unknown()));
/** How JSON and Python write that there is no value. */
const absent: readonly unknown[] = [undefined, null, '', 'null', 'None'];

/**
 * Reads the strength of a LoRA from its metadata, in the terms of PEFT: as JSON in one entry (diffusers, finetrainers),
 * or each field as an entry. `ss_network_alpha` is none of them: musubi's converter keeps it when the factors have it.
 *
 * @returns `alphaOf`: alpha of a module without a tensor for it, by all names that it goes by; `byRoot`: whether the
 * root of the rank divides it; `rank` of all modules; `notes`: what could not be read, or contradicts
 */
export function loraStrength(metadata: ReadonlyMap<string, string> = new Map()) {
  const notes: string[] = [];
  function parse<T>(schema: z.ZodType<T>, value: unknown, what: string): T | undefined {
    if (absent.includes(value)) return undefined;
    const { data, success } = schema.safeParse(value);
    if (!success) notes.push(`its metadata ${what} cannot be read and counts as absent`);
    return data;
  }
  const records = ['lora_adapter_metadata', 'lora_config'].map(
    (key) => parse(table, metadata.get(key), key) ?? {},
  );
  records.push(Object.fromEntries(metadata));
  function find<T>(field: string, schema: z.ZodType<T>): T | undefined {
    const keys = ['transformer.', 'diffusion_model.', ''].map((prefix) => prefix + field);
    const values = records.flatMap((record) =>
      keys.flatMap((key) => parse(schema, record[key], key) ?? []),
    );
    const different = new Set(values.map((value) => JSON.stringify(value)));
    if (different.size > 1) notes.push(`its metadata has two values of ${field}: the first counts`);
    return values[0];
  }
  const patterns = Object.entries(find('alpha_pattern', table) ?? {}).flatMap(([key, value]) => {
    const matcher = matcherOf(key);
    const alpha = parse(number, matcher ? value : key, `alpha_pattern "${key}"`);
    return matcher && alpha !== undefined ? [{ matcher, alpha }] : [];
  });
  const alpha = find('lora_alpha', number);
  const isOneRank = Object.keys(find('rank_pattern', table) ?? {}).length === 0;
  return {
    alphaOf: (names: readonly string[]) =>
      patterns.find(({ matcher }) => names.some((name) => matcher.test(name)))?.alpha ?? alpha,
    byRoot: find('use_rslora', flag) ?? false,
    rank: isOneRank ? find('r', number) : undefined,
    notes,
  };
}

/**
 * As PEFT matches a pattern (`get_pattern_key`): a regular expression for the name of a module, or for its end after
 * a dot. Null for one that is none, and for one that a file could hold up a worker with: groups and repetitions are few.
 */
function matcherOf(pattern: string): RegExp | null {
  const costs = pattern.match(/[*+?{(]/g)?.length ?? 0;
  if (pattern.length > 300 || costs > 4 || /\)[*+{]/.test(pattern)) return null;
  try {
    return new RegExp(`^(.*\\.)?(${pattern})$`);
  } catch {
    return null;
  }
}
