import type { z } from 'zod';
import { manifestSchema } from './manifest';
import type { FinisherPart } from './parameters';

/** A tool of the library, what it is and where its one file is: a language model, or a network that finishes videos. */
export const toolSchema = manifestSchema.pick({
  id: true,
  name: true,
  description: true,
  licence: true,
  sources: true,
  components: true,
  precision: true,
  choices: true,
});
export type ToolManifest = z.output<typeof toolSchema>;

const apache = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' };

/** @param bytes size of the file, about: the hub tells the exact one */
function qwen3(size: string, bytes: number, description: string): ToolManifest {
  const repository = `Qwen/Qwen3-${size}-GGUF`;
  const file = { repository, path: `Qwen3-${size}-Q8_0.gguf`, revision: 'main', bytes };
  return {
    id: `qwen3-${size.toLowerCase()}`,
    name: `Qwen3 ${size}`,
    description,
    licence: apache,
    components: [],
    sources: [{ component: 'language_model', files: [file], optional: false }],
    precision: 'f32',
    choices: [],
  };
}

/** The language models of Kinora's list, the default first. */
export const languageModels: readonly ToolManifest[] = [
  qwen3('0.6B', 639_446_688, 'The default: small, and fast enough for most computers.'),
  qwen3('1.7B', 1_830_000_000, 'Better wording; three times as large and as slow.'),
];

/** @param file with its size: the hub must tell the same hash */
function finisher(
  component: FinisherPart,
  tool: Pick<ToolManifest, 'id' | 'name' | 'description' | 'licence'>,
  file: ToolManifest['sources'][number]['files'][number],
): ToolManifest {
  const sources = [{ component, files: [file], optional: false }];
  return { ...tool, components: [], sources, precision: 'f32', choices: [] };
}

/** The networks of Kinora's list that finish videos. */
export const finisherOf: Readonly<Record<FinisherPart, ToolManifest>> = {
  interpolator: finisher(
    'interpolator',
    {
      id: 'rife-4.26',
      name: 'RIFE 4.26',
      description: 'Puts a computed frame between each two of a video.',
      licence: {
        name: 'MIT',
        url: 'https://github.com/hzwer/Practical-RIFE/blob/main/LICENSE',
      },
    },
    {
      repository: 'Comfy-Org/frame_interpolation',
      path: 'frame_interpolation/rife_v4.26.safetensors',
      revision: 'main',
      bytes: 22_674_688,
      sha256: '151874592c877740e5db11522f4514df569eeafb0a0fcb2696f16e9e8d317c94',
    },
  ),
  upscaler: finisher(
    'upscaler',
    {
      id: 'realesr-general-x4v3',
      name: 'Real-ESRGAN x4v3',
      description: 'Enlarges a video with sharper detail, which may flicker.',
      licence: {
        name: 'BSD-3-Clause',
        url: 'https://github.com/xinntao/Real-ESRGAN/blob/master/LICENSE',
      },
    },
    // A copy of the authors' file (release v0.2.5.0), as their server lets no page read it; the hash is of that file.
    {
      repository: 'leonelhs/realesrgan',
      path: 'realesr-general-x4v3.pth',
      revision: '6907f85a9095e201ec4b3c7e91bbb66cdec0f04d',
      bytes: 4_885_111,
      sha256: '8dc7edb9ac80ccdc30c3a5dca6616509367f05fbc184ad95b731f05bece96292',
    },
  ),
};
export const finishers: readonly ToolManifest[] = Object.values(finisherOf);
