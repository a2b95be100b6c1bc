import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openTensorFiles } from '../../weights';
import { diskFolder } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { imageEncoderTensors } from './image-encoder/image-encoder';
import { readVideoConfig } from './model-config';
import { originalTransformerName, originalVaeName } from './original-names';
import { ggufOf, renamed, safetensorsOf } from './testing/checkpoints';
import { transformerTensors, vaeTensors } from './wan-tensors';

const { recognise } = modelFamilies.wan14b.installation;
const { recognise: recogniseWan22 } = modelFamilies.wan22.installation;
const modelOf = (name: string) =>
  diskFolder(fileURLToPath(new URL(`./goldens/${name}/model/`, import.meta.url)));
const [wan21, a14b] = [modelOf('tiny-wan21-i2v'), modelOf('tiny-wan22-a14b')];

const realTransformer = async (id: string) => {
  const url = new URL(`../../../public/models/${id}/`, import.meta.url);
  return (await readVideoConfig(diskFolder(fileURLToPath(url)))).transformer;
};
const [realA14b, realWan21] = ['wan2.2-i2v-a14b', 'wan2.1-i2v-14b-480p'] as const;

test('the tensors of the real models are as many as are published', async () => {
  expect(transformerTensors(await realTransformer(realA14b)).size).toBe(1095);
  const shapes = transformerTensors(await realTransformer(realWan21));
  expect(shapes.size).toBe(1303);
  const parameters = [...shapes.values()].reduce(
    (sum, shape) => sum + shape.reduce((product, n) => product * n, 1),
    0,
  );
  expect(parameters).toBe(16_394_878_784);
});

test.each(['transformer', 'vae'])('the tensors of the %s are those of its file', async (part) => {
  const config = await readVideoConfig(wan21);
  const expected = part === 'vae' ? vaeTensors(config.vae) : transformerTensors(config.transformer);
  const [file] = await openTensorFiles(wan21, part);
  const found = new Map([...(file?.tensors ?? [])].map(([name, { shape }]) => [name, shape]));
  expect(new Map([...expected].sort())).toEqual(new Map([...found].sort()));
});

test('the original names of the plain VAE count all levels of a side in one sequence', async () => {
  const { vae } = await readVideoConfig(a14b);
  const names: Readonly<Record<string, string>> = {
    'encoder.down_blocks.5.time_conv.weight': 'encoder.downsamples.5.time_conv.weight',
    'encoder.down_blocks.3.conv_shortcut.bias': 'encoder.downsamples.3.shortcut.bias',
    'encoder.down_blocks.0.norm1.gamma': 'encoder.downsamples.0.residual.0.gamma',
    'decoder.up_blocks.1.resnets.0.conv1.weight': 'decoder.upsamples.4.residual.2.weight',
    'decoder.up_blocks.0.upsamplers.0.resample.1.bias': 'decoder.upsamples.3.resample.1.bias',
    'decoder.up_blocks.3.resnets.2.conv2.bias': 'decoder.upsamples.14.residual.6.bias',
    'decoder.mid_block.attentions.0.proj.bias': 'decoder.middle.1.proj.bias',
  };
  for (const [name, original] of Object.entries(names)) {
    expect(originalVaeName(name, vae)).toBe(original);
  }
});

test('files are recognised by their tensors, each family knows its own', async () => {
  const shapes = transformerTensors(await realTransformer(realA14b));
  const original = renamed(shapes, originalTransformerName);
  const gguf = await ggufOf(original, 'wan', 'HighNoise.gguf');
  expect(recognise(gguf)).toEqual({
    name: 'a transformer of Wan2.2-I2V-A14B',
    component: 'transformer',
  });
  expect(recogniseWan22(gguf).component).toBeNull();
  const withImage = await safetensorsOf(transformerTensors(await realTransformer(realWan21)));
  expect(recognise(withImage)).toEqual({
    name: 'the transformer of Wan2.1-I2V-14B',
    component: 'transformer',
  });
  const { vae, image_encoder: encoder } = await readVideoConfig(wan21);
  const vaeFile = await safetensorsOf(
    renamed(vaeTensors(vae), (name) => originalVaeName(name, vae)),
  );
  expect(recognise(vaeFile).component).toBe('vae');
  expect(recogniseWan22(vaeFile).component).toBeNull();
  if (!encoder) throw new Error('the model has an image encoder');
  const clip = renamed(imageEncoderTensors(encoder), (name) => `vision_model.${name}`);
  expect(recognise(await safetensorsOf(clip)).component).toBe('image_encoder');
});

describe('the halves of A14B are told apart by their paths', async () => {
  const shapes = transformerTensors(await realTransformer(realA14b));
  test.each([
    ['model/transformer/diffusion_pytorch_model.safetensors', 'transformer'],
    ['model/transformer_2/diffusion_pytorch_model-00001-of-00003.safetensors', 'transformer_2'],
    ['Wan2.2-I2V-A14B/high_noise_model/diffusion_pytorch_model.safetensors', 'transformer'],
    ['Wan2.2-I2V-A14B/low_noise_model/diffusion_pytorch_model.safetensors', 'transformer_2'],
    ['diffusion_models/wan2.2_i2v_high_noise_14B_fp8_scaled.safetensors', 'transformer'],
    ['diffusion_models/wan2.2_i2v_low_noise_14B_fp8_scaled.safetensors', 'transformer_2'],
    [
      'owner/Wan2.2-I2V-A14B-GGUF/LowNoise/Wan2.2-I2V-A14B-LowNoise-Q4_K_M.gguf@main',
      'transformer_2',
    ],
    ['high and low/transformer_2/a.safetensors', 'transformer_2'],
    ['LowNoise/wan_low_vram.safetensors', 'transformer_2'],
  ])('%s', async (path, component) => {
    expect(recognise(await safetensorsOf(shapes, path)).component).toBe(component);
  });

  test('where nothing tells, the remedy says what would', async () => {
    expect(recognise(await safetensorsOf(shapes, 'mine/low_vram.safetensors'))).toMatchObject({
      component: null,
      remedy: expect.stringContaining('"high" or "low"'),
    });
    // Wan2.1 has one transformer, whatever it is called.
    const image = transformerTensors(await realTransformer(realWan21));
    const wan21 = await safetensorsOf(image, 'transformer_2/low.safetensors');
    expect(recognise(wan21).component).toBe('transformer');
  });
});
