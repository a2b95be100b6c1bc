import { z } from 'zod';
import { KinoraError } from '../../../lib/contract/errors';
import { sharedRequestSchema } from '../../../lib/contract/v3/share';
import { t } from '../../texts';
import '../../texts/en/form';
import { readImage } from './files';
import type { ChosenImage, FormValues } from './form-state';

const answerSchema = z.object({ data: sharedRequestSchema });

/** The request of a shared video, as far as its owner shows it. @throws KinoraError `SHARE_UNREADABLE`, and those of {@link readImage} */
export async function readSharedRequest(
  id: string,
): Promise<{ values: Partial<FormValues>; image: ChosenImage | null }> {
  const folder = `/s/${encodeURIComponent(id)}`;
  const read = async (file: string) => {
    const response = await fetch(`${folder}/${file}`);
    if (!response.ok) throw new Error(`The server responded with status ${response.status}.`);
    return response;
  };
  let answer: z.output<typeof answerSchema>;
  let file: Blob | null;
  try {
    answer = answerSchema.parse(await (await read('request')).json());
    file = answer.data.image ? await (await read('image')).blob() : null;
  } catch (cause) {
    throw new KinoraError('SHARE_UNREADABLE', undefined, { cause });
  }
  const { parameters, profile } = answer.data;
  const { prompt, negative_prompt, size, ...numbers } = parameters;
  const texts = Object.entries(numbers).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  const values: Partial<FormValues> = {
    ...(prompt !== undefined && { prompt }),
    ...(negative_prompt !== undefined && { negative_prompt }),
    ...(size && { size, sizeChosen: true }),
    ...(profile && { profile }),
    ...Object.fromEntries(texts),
  };
  return { values, image: file && (await readImage(file, t('form.sharedImage'))) };
}
