import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { openTensorFile } from '../../weights';
import { diskFile, goldens } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { llamaCppTextEncoderName } from '../umt5/text-encoder-naming';
import { readModelConfig } from './model-config';
import { originalTransformerName, originalVaeName } from './original-names';
import { dit, ggufOf, renamed, type Shapes, safetensorsOf, t5, vae } from './testing/checkpoints';
import { realFolder } from './testing/model';
import { locateComponent, type WeightComponent } from './wan-naming';

const { recognise } = modelFamilies.wan22.installation;
const config = await readModelConfig(realFolder);
const loraFiles = await readdir(`${goldens}loras`);
const originalVae = (name: string) => originalVaeName(name, config.vae);

/** The transformer in another width, depth aside: what the larger and smaller Wans look like. */
function widened(dim: number, ffn: number, inputs: number): Shapes {
  const swap = new Map([
    [3072, dim],
    [14336, ffn],
    [18432, 6 * dim],
    [48, inputs],
  ]);
  return renamed(dit, originalTransformerName, (shape) => shape.map((n) => swap.get(n) ?? n));
}
const plus = (shapes: Shapes, names: readonly string[], shape: readonly number[] = [8]) =>
  new Map([...shapes, ...names.map((name) => [name, shape] as const)]);
const only = (names: readonly string[], shape: readonly number[] = [8, 8]) =>
  new Map(names.map((name) => [name, shape] as const));

describe('files of other models', () => {
  const image = ['blocks.0.cross_attn.k_img.weight', 'blocks.0.cross_attn.v_img.weight'];
  const i2v = widened(5120, 13824, 36);
  const t2v = widened(5120, 13824, 16);
  const adapter = (name: string) => only([`${name}.weight`]);
  const keep = (name: string) => name;
  const withWidth = (from: number, to: number) => (shape: readonly number[]) =>
    shape.map((n) => (n === from ? to : n));
  const wan21Vae = new Map([
    ['encoder.conv1.weight', [96, 3, 3, 3, 3]],
    ['decoder.conv1.weight', [384, 16, 3, 3, 3]],
    ['conv2.weight', [16, 16, 1, 1, 1]],
    ['encoder.downsamples.0.residual.0.gamma', [96, 1, 1, 1]],
  ]);
  const wan21VaeOfDiffusers = new Map([
    ['decoder.conv_in.weight', [384, 16, 3, 3, 3]],
    ['post_quant_conv.weight', [16, 16, 1, 1, 1]],
    ['encoder.down_blocks.0.norm1.gamma', [96, 1, 1, 1]],
    ['decoder.up_blocks.0.resnets.0.conv1.weight', [384, 384, 3, 3, 3]],
  ]);
  const wan21TinyDecoder = new Map([
    ['decoder.1.weight', [256, 16, 3, 3]],
    ['decoder.3.conv.0.weight', [256, 512, 3, 3]],
  ]);
  const imageVae = new Map([
    ['decoder.conv_in.weight', [512, 4, 3, 3]],
    ['decoder.up.0.block.0.conv1.weight', [512, 512, 3, 3]],
  ]);
  const llama = only(['model.embed_tokens.weight', 'model.layers.0.self_attn.q_proj.weight']);
  const sdxl = only([
    'model.diffusion_model.input_blocks.0.0.weight',
    'first_stage_model.decoder.conv_in.weight',
  ]);
  const t5Decoder = plus(t5, ['decoder.block.0.layer.0.SelfAttention.q.weight']);
  const fluxT5 = renamed(t5, llamaCppTextEncoderName, withWidth(256384, 32128));
  const checkpointDit = renamed(
    dit,
    (name) => `model.diffusion_model.${originalTransformerName(name)}`,
  );
  const checkpointVae = renamed(vae, (name) => `vae.${originalVae(name)}`);
  const checkpointText = renamed(t5, (name) => `text_encoders.umt5xxl.transformer.${name}`);
  const whole = new Map([...checkpointDit, ...checkpointText, ...checkpointVae]);
  const flux = 'double_blocks.0.img_attn.qkv';
  /** Title, name in the message, tensors, and the architecture of a GGUF file. */
  const cases: [string, RegExp, Shapes, string?][] = [
    ['Wan2.2 A14B I2V', /Wan2\.2-I2V-A14B/, i2v],
    ['the same as GGUF', /Wan2\.2-I2V-A14B/, i2v, 'wan'],
    ['Wan 14B T2V', /Wan 14B .*Wan2\.2-A14B/, t2v],
    ['Wan 14B T2V, diffusers', /Wan 14B/, renamed(dit, keep, withWidth(3072, 5120))],
    ['a shard of it', /Wan 14B/, new Map([...t2v].slice(200, 300))],
    ['Wan2.1 I2V 14B', /Wan2\.1-I2V-14B/, plus(i2v, image)],
    ['Wan2.1 VACE 14B', /14B VACE/, plus(t2v, ['vace_blocks.0.modulation'])],
    ['Wan2.1 1.3B', /Wan2\.1-1\.3B/, widened(1536, 8960, 16)],
    ['Wan2.2 Fun 5B', /100 input channels/, widened(3072, 14336, 100)],
    ['a LoRA, ComfyUI', /a LoRA/, adapter('diffusion_model.blocks.0.self_attn.q.lora_down')],
    ['a LoRA, kohya', /a LoRA/, adapter('lora_unet_blocks_0_self_attn_q.lora_up')],
    ['a LoRA, PEFT', /a LoRA/, adapter('transformer.blocks.0.attn1.to_q.lora_A.default')],
    [
      'Llama as GGUF',
      /a text model \(llama\)/,
      only(['token_embd.weight', 'blk.0.attn_q.weight']),
      'llama',
    ],
    ['Qwen as GGUF', /a text model \(qwen3\)/, only(['token_embd.weight']), 'qwen3'],
    ['Llama as safetensors', /a text model/, llama],
    ['UMT5 with its decoder', /T5 text model with its decoder/, t5Decoder],
    [
      'T5 with its decoder as GGUF',
      /T5 text model with its decoder/,
      only(['token_embd.weight', 'dec.blk.0.attn_q.weight']),
      't5',
    ],
    ['the T5 of Flux', /a T5 text encoder, not a UMT5/, fluxT5, 't5encoder'],
    ['the VAE of Wan2.1', /VAE of Wan2\.1 with 16/, wan21Vae],
    ['the VAE of Wan2.1, diffusers', /VAE of Wan2\.1/, wan21VaeOfDiffusers],
    ['a tiny decoder of Wan2.1', /tiny decoder for latents of 16/, wan21TinyDecoder],
    ['Flux', /Flux/, only([`model.diffusion_model.${flux}.weight`])],
    ['Flux as GGUF', /another image or video model \(flux\)/, only([`${flux}.weight`]), 'flux'],
    ['SDXL', /Stable Diffusion/, sdxl],
    ['the VAE of Stable Diffusion', /a VAE of an image model/, imageVae],
    ['CLIP', /CLIP/, only(['text_model.encoder.layers.0.self_attn.q_proj.weight'])],
    ['all parts', /a checkpoint with transformer, text encoder, VAE in one file/, whole],
    ['two parts', /transformer, VAE in one file/, new Map([...checkpointDit, ...checkpointVae])],
  ];
  test.each(cases)('%s', async (_, name, shapes, architecture) => {
    const file = await (architecture ? ggufOf(shapes, architecture) : safetensorsOf(shapes));
    expect(recognise(file).name).toMatch(name);
    expect(recognise(file).component).toBeNull();
    for (const component of ['transformer', 'text_encoder', 'vae', 'tiny_decoder'] as const) {
      expect(() => locateComponent(component, [file], config)).toThrow(
        expect.objectContaining({ code: 'MODEL_WRONG_KIND', message: expect.stringMatching(name) }),
      );
    }
  });

  test.each(loraFiles)('%s', async (name) => {
    const file = await openTensorFile(await diskFile(`${goldens}loras/${name}`));
    expect(recognise(file)).toEqual({ name: 'a LoRA', component: null });
  });

  test('the message names the wanted part, also for our own other parts', async () => {
    const file = await safetensorsOf(vae, 'vae.safetensors');
    expect(() => locateComponent('transformer', [file], config)).toThrow(
      'vae.safetensors is the VAE of Wan2.2, but the transformer of a Wan2.2-TI2V model is wanted.',
    );
  });

  test('an unknown file is refused with its first tensor', async () => {
    const file = await safetensorsOf(only(['a.b.c']), 'x.safetensors');
    expect(recognise(file)).toEqual({ name: '', component: null });
    expect(() => locateComponent('vae', [file], config)).toThrow(
      'x.safetensors has no tensor of the VAE; its first one is a.b.c.',
    );
  });
});

describe('our own files, whole and in shards', () => {
  const parts = (shapes: Shapes, count: number) => {
    const all = [...shapes];
    const size = Math.ceil(all.length / count);
    return Array.from({ length: count }, (_, i) => new Map(all.slice(i * size, (i + 1) * size)));
  };
  test.each<[WeightComponent, Shapes]>([
    ['transformer', dit],
    [
      'transformer',
      renamed(dit, (name) => `model.diffusion_model.${originalTransformerName(name)}`),
    ],
    ['text_encoder', t5],
    ['vae', vae],
    ['vae', renamed(vae, originalVae)],
  ])('%s', async (component, shapes) => {
    expect(recognise(await safetensorsOf(shapes)).component).toBe(component);
    // A VAE is too small for shards.
    for (const shard of component === 'vae' ? [] : parts(shapes, 5)) {
      expect(recognise(await safetensorsOf(shard)).component).toBe(component);
    }
  });

  test.each(['pig', 'flux', 'llama', 'wan'])('GGUF with the label "%s"', async (label) => {
    const transformer = renamed(dit, originalTransformerName);
    expect(recognise(await ggufOf(transformer, label)).component).toBe('transformer');
    const text = renamed(t5, llamaCppTextEncoderName);
    expect(recognise(await ggufOf(text, label)).component).toBe('text_encoder');
    const original = renamed(vae, originalVae);
    expect(recognise(await ggufOf(original, label)).component).toBe('vae');
  });

  test('light decoder', async () => {
    const file = await openTensorFile(await diskFile(`${goldens}formats/light-decoder.pth`));
    expect(recognise(file)).toEqual({
      name: 'a light decoder of Wan2.2',
      component: 'light_decoder',
    });
  });

  test.each(['base', 'super'])('tiny decoder, %s', async (variant) => {
    const path = `${goldens}formats/tiny-decoder-${variant}.safetensors`;
    expect(recognise(await openTensorFile(await diskFile(path))).component).toBe('tiny_decoder');
  });
});
