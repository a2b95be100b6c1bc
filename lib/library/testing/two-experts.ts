/** A model family as the library sees one: two transformers that take turns, and an image encoder. */
import { KinoraError, type ModelManifest } from '../../contract';
import { testManifest } from '../../contract/testing/manifest';
import type { ModelInstallation } from '../../pipeline/installation';
import { locateTensors } from '../../weights/formats/located';

const repository = 'kinora/two-experts';
const file = (path: string) => ({ repository, path });

/** Its parts, each of which is one tensor of the part's name. */
export const parts = ['high_noise', 'low_noise', 'image_encoder'] as const;

export const twoExpertsManifest: ModelManifest = testManifest({
  id: 'two-experts',
  name: 'Two experts',
  family: 'two-experts',
  framesPerSecond: 16,
  frameStride: 8,
  maxClipFrames: 81,
  precision: 'int8',
  components: [
    { id: 'high_noise', name: 'First expert', precisions: ['f32', 'int8'] },
    { id: 'low_noise', name: 'Second expert', precisions: ['f32', 'int8'] },
    { id: 'image_encoder' },
  ],
  sources: [
    { component: 'configuration', files: [file('sizes.json')] },
    ...parts.map((part) => ({ component: part, files: [file(`${part}.safetensors`)] })),
  ],
});

/** Its configuration says how many values each tensor has. */
export const twoExperts: ModelInstallation = {
  configurationFiles: ['sizes.json'],
  optionalFiles: [],
  async plan(configuration) {
    const sizes = (await configuration.json('sizes.json')) as Readonly<Record<string, number>>;
    const shapeOf = (component: string) => [sizes[component] ?? 0];
    return {
      check(component, files) {
        const tensors = locateTensors(files);
        const shape = shapeOf(component);
        const found = tensors.get(component)?.entry.shape;
        if (`${found}` !== `${shape}`) {
          throw new KinoraError('TENSOR_SHAPE', `${component} is [${found}], expected [${shape}].`);
        }
        const tensor = { name: component, source: component, shape, form: 'f32' as const };
        return { recipe: { component, tensors: [{ ...tensor, pack: 'all.bin' }] }, tensors };
      },
      storedBytes: (component) => 4 * (sizes[component] ?? 0),
    };
  },
  recognise(weights) {
    const names = new Set(locateTensors([weights]).keys());
    return { name: '', component: parts.find((part) => names.has(part)) ?? null };
  },
  async inspectLora(checkpoint, name) {
    const down = [...checkpoint.names()].find((key) => key === 'expert.down');
    if (down === undefined)
      throw new KinoraError('LORA_WRONG_BASE', `${name} is for another base.`);
    return checkpoint.shape(down)[0] ?? 0;
  },
};
