import type { z } from 'zod';
import { manifestSchema } from './manifest';

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

/** The networks of Kinora's list that finish videos. */
export const finishers: readonly ToolManifest[] = [
  {
    id: 'rife-4.26',
    name: 'RIFE 4.26',
    description: 'Puts a computed frame between each two of a video.',
    licence: {
      name: 'MIT',
      url: 'https://github.com/hzwer/Practical-RIFE/blob/main/LICENSE',
    },
    components: [],
    sources: [
      {
        component: 'interpolator',
        files: [
          {
            repository: 'Comfy-Org/frame_interpolation',
            path: 'frame_interpolation/rife_v4.26.safetensors',
            revision: 'main',
            bytes: 22_674_688,
            sha256: '151874592c877740e5db11522f4514df569eeafb0a0fcb2696f16e9e8d317c94',
          },
        ],
        optional: false,
      },
    ],
    precision: 'f32',
    choices: [],
  },
];
