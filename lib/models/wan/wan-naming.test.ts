import { beforeAll, describe, expect, test } from 'vitest';
import { openTensorFile, type TensorFile } from '../../weights';
import { diskFile, goldens } from '../../weights/testing/files';
import { llamaCppTextEncoderName, originalTextEncoderName } from '../umt5/text-encoder-naming';
import { type ModelConfig, readModelConfig } from './model-config';
import { originalTransformerName, originalVaeName } from './original-names';
import { dit, ggufOf, renamed, type Shapes, safetensorsOf, t5, vae } from './testing/checkpoints';
import { realFolder, tinyFolder } from './testing/model';
import { locateComponent, openComponent, type WeightComponent } from './wan-naming';

const config = await readModelConfig(realFolder);
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

const check = (component: WeightComponent, files: readonly TensorFile[], by = config) =>
  locateComponent(component, files, by);

describe('the published checkpoints, all tensors in their shapes', () => {
  const count = { transformer: 825, text_encoder: 242, vae: 196 } as const;
  const published = { transformer: dit, text_encoder: untied, vae } as const;
  const original = renamed(dit, originalTransformerName);
  const fused = renamed(dit, originalTransformerName, (shape) =>
    shape.length === 5 ? [3072 * 48, 1, 2, 2] : shape,
  );
  const tied = renamed(t5, (name) => (name === 'shared.weight' ? null : name));
  const llamaCpp = renamed(untied, llamaCppTextEncoderName);
  /** Title, component, naming, tensors, and the architecture of a GGUF file. */
  const cases: [string, keyof typeof count, string, Shapes, string?][] = [
    ['diffusers', 'transformer', 'diffusers', dit],
    ['original', 'transformer', 'original', original],
    [
      'model.diffusion_model.',
      'transformer',
      'original',
      renamed(original, prefixed('model.diffusion_model.')),
    ],
    ['diffusion_model.', 'transformer', 'diffusers', renamed(dit, prefixed('diffusion_model.'))],
    ['model.', 'transformer', 'original', renamed(original, prefixed('model.'))],
    ['GGUF', 'transformer', 'original', original, 'wan'],
    [
      'GGUF of llama-quantize',
      'transformer',
      'original',
      renamed(dit, originalTransformerName, withoutLeadingOnes),
      'wan',
    ],
    ['GGUF with a joined kernel', 'transformer', 'original', fused, 'wan'],
    ['transformers', 'text_encoder', 'diffusers', t5],
    ['embedding once', 'text_encoder', 'diffusers', untied],
    ['embedding under its tied name', 'text_encoder', 'diffusers', tied],
    ['original', 'text_encoder', 'original', renamed(untied, originalTextEncoderName)],
    ['GGUF', 'text_encoder', 'llama.cpp', llamaCpp, 't5encoder'],
    ['diffusers', 'vae', 'diffusers', vae],
    ['original', 'vae', 'original', renamed(vae, originalVae)],
    ['GGUF', 'vae', 'original', renamed(vae, originalVae), 'wan'],
  ];
  test.each(cases)('%s of the %s', async (_, component, naming, shapes, architecture) => {
    const file = architecture ? ggufOf(shapes, architecture) : safetensorsOf(shapes);
    const located = check(component, [await file]);
    expect(located.size).toBe(count[component]);
    expect(located.naming).toBe(naming);
    expect(new Map([...located].map(([name, { entry }]) => [name, entry.shape]))).toEqual(
      new Map([...published[component]].filter(([name]) => located.has(name))),
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
    ['light_decoder', 'formats/light-decoder.pth', 'diffusers'],
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
  /** The tensors with one in another shape, or without it where the shape is null. */
  const withOne = (shapes: Shapes, name: string, shape: readonly number[] | null) => {
    const changed = new Map(shapes);
    changed.delete(name);
    return shape ? changed.set(name, shape) : changed;
  };
  const originalText = renamed(untied, originalTextEncoderName);
  const originalVaeShapes = renamed(vae, originalVae);

  describe.each<[string, [WeightComponent, string, Shapes, readonly number[] | null][]]>([
    [
      'TENSOR_MISSING',
      [
        ['transformer', 'blocks.17.norm3.bias', original, null],
        ['transformer', 'blocks.17.norm2.bias', dit, null],
        ['text_encoder', 'blocks.23.pos_embedding.embedding.weight', originalText, null],
        ['vae', 'decoder.upsamples.1.upsamples.3.time_conv.weight', originalVaeShapes, null],
      ],
    ],
    [
      'TENSOR_SHAPE',
      [
        ['transformer', 'blocks.4.ffn.0.weight', original, [13824, 3072]],
        // Without its leading one.
        ['transformer', 'head.modulation', original, [3, 3072]],
        ['vae', 'encoder.conv_in.weight', vae, [160, 3, 3, 3, 3]],
      ],
    ],
    [
      'TENSOR_EXTRA',
      [
        // A block and a layer too many, tensors for an image, an affine norm2 beside norm3, and no known one.
        ['transformer', 'blocks.30.self_attn.q.weight', original, [3072, 3072]],
        ['text_encoder', 'encoder.block.24.layer.0.layer_norm.weight', t5, [4096]],
        ['transformer', 'blocks.0.cross_attn.k_img.weight', original, [3072, 3072]],
        ['transformer', 'blocks.0.attn2.add_k_proj.weight', dit, [3072, 3072]],
        ['transformer', 'img_emb.proj.0.weight', original, [1280]],
        ['transformer', 'blocks.0.norm2.weight', original, [3072]],
        ['vae', 'encoder.more', vae, [1]],
      ],
    ],
  ])('%s', (code, cases) => {
    test.each(cases)('%s: %s', async (component, name, shapes, shape) => {
      const file = await safetensorsOf(withOne(shapes, name, shape));
      expect(() => check(component, [file])).toThrow(
        expect.objectContaining({ code, message: expect.stringContaining(name) }),
      );
    });
  });

  test('a patch embedding that is kept as a linear layer has the shape of its kernel again', async () => {
    const name = 'patch_embedding.weight';
    const file = await safetensorsOf(withOne(dit, name, [3072, 192]));
    expect(check('transformer', [file]).get(name)?.entry.shape).toEqual([3072, 48, 1, 2, 2]);
    const wider = await safetensorsOf(withOne(dit, name, [3072, 400]));
    expect(() => check('transformer', [wider])).toThrow(/100 input channels/);
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
    const blocks = await safetensorsOf(withOne(original, 'head.head.scale_weight', [192, 96, 1]));
    expect(() => check('transformer', [blocks])).toThrow(
      expect.objectContaining({
        code: 'TENSOR_DTYPE',
        message: expect.stringMatching(
          /fp8 with a scale for each block .*head\.head\.scale_weight/,
        ),
      }),
    );
  });
});
