import type { Dispatch } from 'react';
import { appPath, demonstrationModel, KinoraError } from '../../../lib/contract';
import type { TextKey } from '../../texts';
import '../../texts/en/form';
import { readImage } from './files';
import type { FormAction, FormValues } from './form-state';

/** A request with a start picture. */
export interface Example {
  readonly name: TextKey;
  /** Path of the app's origin. */
  readonly picture: `/${string}`;
  readonly values: Pick<FormValues, 'prompt' | 'size'>;
}

export const examples: readonly Example[] = [
  {
    name: 'form.examples.lighthouse',
    picture: '/samples/lighthouse.jpg',
    values: {
      prompt: 'A lighthouse by the sea at dusk. Night falls slowly. Calm, cinematic.',
      size: '1280*720',
    },
  },
  {
    name: 'form.examples.balloons',
    picture: '/samples/balloons.jpg',
    values: {
      prompt:
        'Hot-air balloons over desert dunes at sunrise. The camera zooms in slowly. Warm light.',
      size: '1280*720',
    },
  },
  {
    name: 'form.examples.street',
    picture: '/samples/street.jpg',
    values: {
      prompt: 'A narrow city street in the rain. The camera tilts up. Moody, film grain.',
      size: '720*1280',
    },
  },
  {
    name: 'form.examples.aurora',
    picture: '/samples/aurora.jpg',
    values: {
      prompt:
        'A log cabin in the snow under green northern lights. The camera pans slowly to the left. Peaceful.',
      size: '1280*720',
    },
  },
];

/**
 * Fills the form with a picture of Kinora and values that go with it, as an example has them.
 *
 * @param fileName of the picture in the form
 * @throws KinoraError `SERVER_UNREACHABLE`
 */
export async function loadExample(
  { picture, values }: { readonly picture: `/${string}`; readonly values: Partial<FormValues> },
  change: Dispatch<FormAction>,
  fileName = nameOf(picture),
): Promise<void> {
  const image = await readImage(await fetchSample(picture), fileName);
  change({ type: 'imageSet', image });
  change({ type: 'changed', values });
}

/** The LoRA that comes with Kinora: the video of the demonstration model turns to sepia. */
const exampleLora = '/samples/mini-sepia.safetensors';

/** The name of the example of a LoRA for a model; null where there is none. */
export function exampleLoraOf(model: string | undefined): string | null {
  return model === demonstrationModel ? nameOf(exampleLora) : null;
}

/** The path of a LoRA that comes with Kinora, by the name of its file; null for others. */
export function bundledLora(name: string): string | null {
  return name === nameOf(exampleLora) ? exampleLora : null;
}

/** @throws KinoraError `SERVER_UNREACHABLE` */
export async function loadExampleLora(): Promise<File> {
  return new File([await fetchSample(exampleLora)], nameOf(exampleLora));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** @throws KinoraError `SERVER_UNREACHABLE` */
async function fetchSample(path: `/${string}`): Promise<Blob> {
  const response = await fetch(appPath(path)).catch(() => null);
  if (!response?.ok) throw new KinoraError('SERVER_UNREACHABLE');
  return response.blob();
}
