import { z } from 'zod';

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
  // Where every tag is as frequent as every other one, none of them stands out.
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
