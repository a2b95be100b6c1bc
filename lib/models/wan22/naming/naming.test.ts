import { beforeAll, describe, expect, test } from 'vitest';
import { openTensorFile, type TensorFile } from '../../../weights';
import { diskFile, goldens } from '../../../weights/testing/files';
import { type ModelConfig, readModelConfig } from '../config';
import {
  ggufOf,
  publishedTensors,
  renamed,
  type Shapes,
  safetensorsOf,
} from '../testing/checkpoints';
import { realFolder, tinyFolder } from '../testing/model';
import { canonicalise, checkArchitecture, openComponent, type WeightComponent } from './index';
import {
  llamaCppTextEncoderName,
  originalTextEncoderName,
  originalTransformerName,
  originalVaeName,
} from './original';

const config = await readModelConfig(realFolder);
const dit = await publishedTensors('dit.txt');
const t5 = await publishedTensors('t5.txt');
const vae = await publishedTensors('vae.txt');
const untied = renamed(t5, (name) => (name.startsWith('encoder.embed') ? null : name));
const originalVae = (name: string) => originalVaeName(name, config.vae);
const prefixed =
  (prefix: string, rename = (name: string) => name) =>
  (name: string) =>
    prefix + rename(name);
/** GGML forgets leading dimensions of one. */
const withoutLeadingOnes = (shape: readonly number[]) =>
  shape.slice(
    Math.max(
      0,
      shape.findIndex((n) => n !== 1),
    ),
  );

function check(component: WeightComponent, files: readonly TensorFile[], by = config) {
  const located = canonicalise(component, files, by);
  checkArchitecture(component, located, by);
  return located;
}

describe('the published checkpoints, all tensors in their shapes', () => {
  const cases: [string, WeightComponent, number, string, () => Promise<TensorFile>][] = [
    ['transformer, diffusers', 'transformer', 825, 'diffusers', () => safetensorsOf(dit)],
    [
      'transformer, original',
      'transformer',
      825,
      'original',
      () => safetensorsOf(renamed(dit, originalTransformerName)),
    ],
    [
      'transformer, model.diffusion_model.',
      'transformer',
      825,
      'original',
      () =>
        safetensorsOf(renamed(dit, prefixed('model.diffusion_model.', originalTransformerName))),
    ],
    [
      'transformer, diffusion_model.',
      'transformer',
      825,
      'diffusers',
      () => safetensorsOf(renamed(dit, prefixed('diffusion_model.'))),
    ],
    [
      'transformer, model.',
      'transformer',
      825,
      'original',
      () => safetensorsOf(renamed(dit, prefixed('model.', originalTransformerName))),
    ],
    [
      'transformer, GGUF',
      'transformer',
      825,
      'original',
      () => ggufOf(renamed(dit, originalTransformerName), 'wan'),
    ],
    [
      'transformer, GGUF of llama-quantize',
      'transformer',
      825,
      'original',
      () => ggufOf(renamed(dit, originalTransformerName, withoutLeadingOnes), 'wan'),
    ],
    [
      'transformer, GGUF with a joined kernel',
      'transformer',
      825,
      'original',
      () =>
        ggufOf(
          renamed(dit, originalTransformerName, (shape) =>
            shape.length === 5 ? [3072 * 48, 1, 2, 2] : shape,
          ),
          'wan',
        ),
    ],
    ['text encoder, transformers', 'text_encoder', 242, 'diffusers', () => safetensorsOf(t5)],
    ['text encoder, embedding once', 'text_encoder', 242, 'diffusers', () => safetensorsOf(untied)],
    [
      'text encoder, embedding under its tied name',
      'text_encoder',
      242,
      'diffusers',
      () => safetensorsOf(renamed(t5, (name) => (name === 'shared.weight' ? null : name))),
    ],
    [
      'text encoder, original',
      'text_encoder',
      242,
      'original',
      () => safetensorsOf(renamed(untied, originalTextEncoderName)),
    ],
    [
      'text encoder, GGUF',
      'text_encoder',
      242,
      'llama.cpp',
      () => ggufOf(renamed(untied, llamaCppTextEncoderName), 't5encoder'),
    ],
    ['VAE, diffusers', 'vae', 196, 'diffusers', () => safetensorsOf(vae)],
    ['VAE, original', 'vae', 196, 'original', () => safetensorsOf(renamed(vae, originalVae))],
    ['VAE, GGUF', 'vae', 196, 'original', () => ggufOf(renamed(vae, originalVae), 'wan')],
  ];
  test.each(cases)('%s', async (_, component, count, naming, open) => {
    const located = check(component, [await open()]);
    expect(located.size).toBe(count);
    expect(located.naming).toBe(naming);
    const published = { transformer: dit, text_encoder: untied, vae }[component as 'vae'];
    expect(new Map([...located].map(([name, { entry }]) => [name, entry.shape]))).toEqual(
      new Map([...published].filter(([name]) => located.has(name))),
    );
  });

  test('in shards', async () => {
    const all = [...dit];
    const shards = await Promise.all(
      [all.slice(0, 300), all.slice(300, 301), all.slice(301)].map((part, i) =>
        safetensorsOf(new Map(part), `${i}.safetensors`),
      ),
    );
    expect(check('transformer', shards.toReversed()).size).toBe(825);
    expect(() => check('transformer', shards.slice(1))).toThrow(/lacks the tensor/);
    const [first, ...rest] = shards;
    if (first) expect(() => check('transformer', [first, first, ...rest])).toThrow(/both have/);
  });
});

describe('the goldens', () => {
  let tiny: ModelConfig;
  beforeAll(async () => {
    tiny = await readModelConfig(tinyFolder);
  });
  test.each<[WeightComponent, string, string]>([
    ['transformer', 'formats/transformer-Q8_0.gguf', 'original'],
    ['text_encoder', 'formats/text-encoder-Q8_0.gguf', 'llama.cpp'],
    ['vae', 'formats/vae-fp16-original-keys.safetensors', 'original'],
    ['tiny_decoder', 'formats/tiny-decoder-base.safetensors', 'diffusers'],
    ['tiny_decoder', 'formats/tiny-decoder-super.safetensors', 'diffusers'],
    ['transformer', 'model/transformer/diffusion_pytorch_model.safetensors', 'diffusers'],
    ['text_encoder', 'model/text_encoder/model.safetensors', 'diffusers'],
    ['vae', 'model/vae/diffusion_pytorch_model.safetensors', 'diffusers'],
  ])('%s of %s', async (component, path, naming) => {
    const file = await openTensorFile(await diskFile(goldens + path));
    expect(check(component, [file], tiny).naming).toBe(naming);
  });

  test('the same values under either name, the renumbered norm included', async () => {
    const open = async (path: string) => [await openTensorFile(await diskFile(goldens + path))];
    const original = openComponent(
      'vae',
      await open('formats/vae-fp16-original-keys.safetensors'),
      tiny,
    );
    const reference = openComponent(
      'vae',
      await open('model/vae/diffusion_pytorch_model.safetensors'),
      tiny,
    );
    for (const name of reference.names()) {
      const [a, b] = [await original.read(name), await reference.read(name)];
      const off = a.findIndex(
        (value, i) => Math.abs(value - (b[i] ?? 0)) > 1e-3 + 1e-3 * Math.abs(value),
      );
      expect(off, name).toBe(-1);
    }
    const gguf = openComponent('transformer', await open('formats/transformer-Q8_0.gguf'), tiny);
    const dit = openComponent(
      'transformer',
      await open('model/transformer/diffusion_pytorch_model.safetensors'),
      tiny,
    );
    for (const name of dit.names()) {
      const [a, b] = [await gguf.read(name), await dit.read(name)];
      const largest = b.reduce((max, value) => Math.max(max, Math.abs(value)), 0);
      const off = a.findIndex((value, i) => Math.abs(value - (b[i] ?? 0)) > largest / 127);
      expect(off, name).toBe(-1);
    }
  });
});

describe('one tensor is wrong: the sentence names it as the file does', () => {
  const original = renamed(dit, originalTransformerName);
  const without = (shapes: Shapes, name: string) =>
    renamed(shapes, (other) => (other === name ? null : other));
  const withOne = (shapes: Shapes, name: string, shape: readonly number[]) =>
    new Map([...shapes, [name, shape] as const]);

  const cases: [string, WeightComponent, string, string, Shapes][] = [
    [
      'missing',
      'transformer',
      'TENSOR_MISSING',
      'blocks.17.norm3.bias',
      without(original, 'blocks.17.norm3.bias'),
    ],
    [
      'missing',
      'transformer',
      'TENSOR_MISSING',
      'blocks.17.norm2.bias',
      without(dit, 'blocks.17.norm2.bias'),
    ],
    [
      'missing',
      'text_encoder',
      'TENSOR_MISSING',
      'blocks.23.pos_embedding.embedding.weight',
      without(renamed(untied, originalTextEncoderName), 'blocks.23.pos_embedding.embedding.weight'),
    ],
    [
      'missing',
      'vae',
      'TENSOR_MISSING',
      'decoder.upsamples.1.upsamples.3.time_conv.weight',
      without(renamed(vae, originalVae), 'decoder.upsamples.1.upsamples.3.time_conv.weight'),
    ],
    [
      'of another shape',
      'transformer',
      'TENSOR_SHAPE',
      'blocks.4.ffn.0.weight',
      withOne(original, 'blocks.4.ffn.0.weight', [13824, 3072]),
    ],
    [
      'without its leading one',
      'transformer',
      'TENSOR_SHAPE',
      'head.modulation',
      withOne(original, 'head.modulation', [2, 3072]),
    ],
    [
      'of another shape',
      'vae',
      'TENSOR_SHAPE',
      'encoder.conv_in.weight',
      withOne(vae, 'encoder.conv_in.weight', [160, 3, 3, 3, 3]),
    ],
    [
      'of a block too many',
      'transformer',
      'TENSOR_EXTRA',
      'blocks.30.self_attn.q.weight',
      withOne(original, 'blocks.30.self_attn.q.weight', [3072, 3072]),
    ],
    [
      'for an image',
      'transformer',
      'TENSOR_EXTRA',
      'blocks.0.cross_attn.k_img.weight',
      withOne(original, 'blocks.0.cross_attn.k_img.weight', [3072, 3072]),
    ],
    [
      'for an image',
      'transformer',
      'TENSOR_EXTRA',
      'blocks.0.attn2.add_k_proj.weight',
      withOne(dit, 'blocks.0.attn2.add_k_proj.weight', [3072, 3072]),
    ],
    [
      'for an image',
      'transformer',
      'TENSOR_EXTRA',
      'img_emb.proj.0.weight',
      withOne(original, 'img_emb.proj.0.weight', [1280]),
    ],
    [
      'that is an affine norm2 beside norm3',
      'transformer',
      'TENSOR_EXTRA',
      'blocks.0.norm2.weight',
      withOne(original, 'blocks.0.norm2.weight', [3072]),
    ],
    [
      'of a layer too many',
      'text_encoder',
      'TENSOR_EXTRA',
      'encoder.block.24.layer.0.layer_norm.weight',
      withOne(t5, 'encoder.block.24.layer.0.layer_norm.weight', [4096]),
    ],
    [
      'of no meaning known',
      'vae',
      'TENSOR_EXTRA',
      'encoder.more',
      withOne(vae, 'encoder.more', [1]),
    ],
  ];
  test.each(cases)('%s, %s: %s %s', async (_, component, code, name, shapes) => {
    const file = await safetensorsOf(shapes);
    expect(() => check(component, [file])).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(name) }),
    );
  });

  test('a linear weight whose dimensions were joined is wrong in GGUF too', async () => {
    const file = await ggufOf(withOne(original, 'blocks.0.ffn.0.weight', [14336 * 3072]), 'wan');
    expect(() => check('transformer', [file])).toThrow(
      /blocks\.0\.ffn\.0\.weight .* is \[44040192\]/,
    );
  });

  test('a type that cannot be read is refused before anything is fetched', async () => {
    const file = await ggufOf(original, 'wan');
    const name = 'blocks.3.ffn.0.weight';
    const entry = file.tensors.get(name);
    if (!entry) throw new Error(`no ${name}`);
    const tensors = new Map([...file.tensors, [name, { ...entry, dtype: 'IQ4_XS' }] as const]);
    expect(() => check('transformer', [{ ...file, tensors }])).toThrow(
      expect.objectContaining({
        code: 'TENSOR_DTYPE',
        message: expect.stringMatching(/blocks\.3\.ffn\.0\.weight.*IQ4_XS/),
      }),
    );
  });

  test('what has no meaning for the result passes', async () => {
    const shapes = new Map([
      ...renamed(original, prefixed('model.diffusion_model.')),
      ['scaled_fp8', [0]] as const,
      ['model.diffusion_model.blocks.0.ffn.0.scale_input', [1]] as const,
    ]);
    expect(check('transformer', [await safetensorsOf(shapes)]).size).toBe(825);
    const text = new Map([
      ...t5,
      ['spiece_model', [4_548_313]] as const,
      ['lm_head.weight', [256384, 4096]] as const,
    ]);
    expect(check('text_encoder', [await safetensorsOf(text)]).size).toBe(242);
  });

  test('fp8 scales belong to their weights', async () => {
    const scales = [...original.keys()].filter((name) => /ffn\.\d\.weight$/.test(name));
    const shapes = new Map([
      ...original,
      ...scales.map((name) => [name.replace('.weight', '.scale_weight'), [1]] as const),
    ]);
    const located = check('transformer', [await safetensorsOf(shapes)]);
    expect(located.get('blocks.3.ffn.net.2.weight')?.scale?.entry.shape).toEqual([1]);
    expect(located.get('blocks.3.attn1.to_q.weight')?.scale).toBeUndefined();
    expect(located.extras.size).toBe(0);
  });

  test('a lone scale, and one of many numbers, are named', async () => {
    const lone = await safetensorsOf(withOne(original, 'blocks.0.ffn.7.scale_weight', [1]));
    expect(() => check('transformer', [lone])).toThrow(/blocks\.0\.ffn\.7\.scale_weight/);
    const rows = await safetensorsOf(withOne(original, 'head.head.scale_weight', [192]));
    expect(() => check('transformer', [rows])).toThrow(/head\.head\.scale_weight is \[192\]/);
  });
});
