import { z } from 'zod';
import { KinoraError } from '../../../lib/contract';
import { sharedRequestSchema } from '../../../lib/contract/v3';
import { t } from '../../texts';
import '../../texts/en/form';
import { readImage, sharedValues } from './files';
import type { ChosenImage, FormValues } from './form-state';

const answerSchema = z.object({ data: sharedRequestSchema });

/** The request of a shared video, as far as its owner shows it. @throws KinoraError `SHARE_UNREADABLE`, and those of {@link readImage} */
export async function readSharedRequest(id: string): Promise<{
  values: Partial<FormValues>;
  image: ChosenImage | null;
  lastImage: ChosenImage | null;
}> {
  const folder = `/s/${encodeURIComponent(id)}`;
  const read = async (file: string) => {
    const response = await fetch(`${folder}/${file}`);
    if (!response.ok) throw new Error(`The server responded with status ${response.status}.`);
    return response;
  };
  let answer: z.output<typeof answerSchema>;
  const pictureOf = async (name: 'image' | 'last-image') => (await read(name)).blob();
  let file: Blob | null;
  let last: Blob | null;
  try {
    answer = answerSchema.parse(await (await read('request')).json());
    file = answer.data.image ? await pictureOf('image') : null;
    last = answer.data.last_image ? await pictureOf('last-image') : null;
  } catch (cause) {
    throw new KinoraError('SHARE_UNREADABLE', undefined, { cause });
  }
  const values = sharedValues(answer.data);
  return {
    values,
    image: file && (await readImage(file, t('form.sharedImage'))),
    lastImage: last && (await readImage(last, t('form.sharedImage'))),
  };
}
