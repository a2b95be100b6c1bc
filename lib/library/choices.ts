import { z } from 'zod';
import { componentIds, precisions } from '../contract';
import type { StoreFolder } from '../weights/store/folder';

const fileName = 'library.json';

const schema = z.object({
  /** Base address of the hub; null for the one that is set by default. */
  hub: z.string().nullable().default(null),
  /** Precision that was chosen for each model. */
  precision: z.record(z.string(), z.enum(precisions)).default({}),
  /** Parts whose download was begun and neither ended nor cancelled, by model. */
  wanted: z.record(z.string(), z.array(z.enum(componentIds))).default({}),
});

/** What the user has chosen. */
export type Choices = z.output<typeof schema>;

/** Web Lock of the file: whoever reads it may write it next, and no other tab in between. */
export const choicesLock = 'kinora:library';

/** Reads the choices; what cannot be understood counts as never made. */
export async function readChoices(folder: StoreFolder): Promise<Choices> {
  const text = await folder.readText(fileName);
  try {
    return schema.parse(JSON.parse(text ?? '{}'));
  } catch {
    return schema.parse({});
  }
}

export async function writeChoices(folder: StoreFolder, choices: Choices): Promise<void> {
  await folder.writeText(fileName, JSON.stringify(choices));
}
