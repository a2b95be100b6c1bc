import { type Dispatch, useEffect, useEffectEvent } from 'react';
import { z } from 'zod';
import { KinoraError, toKinoraError } from '../../lib/contract/errors';
import { sharedRequestSchema } from '../../lib/contract/v3/share';
import { readImage } from './files';
import type { ChosenImage, FormAction, FormValues } from './form-state';

/**
 * Fills the form with the request of a shared video, where the page was opened by "Open in Kinora" of its page:
 * what its owner shows, and nothing else changes.
 *
 * @param ready whether the draft is restored, which would overwrite the request
 */
export function useSharedRequest(
  ready: boolean,
  change: Dispatch<FormAction>,
  showError: (error: KinoraError) => void,
): void {
  const fill = useEffectEvent(async (id: string) => {
    try {
      const { values, image } = await readSharedRequest(id);
      change({ type: 'changed', values });
      if (image) change({ type: 'imageSet', image });
    } catch (thrown) {
      showError(toKinoraError(thrown));
    }
  });
  useEffect(() => {
    const id = new URLSearchParams(window.location.search).get('share');
    if (!ready || id === null) return;
    window.history.replaceState(null, '', window.location.pathname);
    void fill(id);
  }, [ready]);
}

const answerSchema = z.object({ data: sharedRequestSchema });

/** @throws KinoraError `SHARE_UNREADABLE`, and those of {@link readImage} */
async function readSharedRequest(
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
    ...(size && { size }),
    ...(profile && { profile }),
    ...Object.fromEntries(texts),
  };
  return { values, image: file && (await readImage(file, 'shared image')) };
}
