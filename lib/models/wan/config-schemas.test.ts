import { describe, expect, test } from 'vitest';
import { diskFolder, goldens, patchedFolder } from '../../weights/testing/files';
import { decoderBlocks, encoderBlocks, transformerDim } from './config-schemas';
import { wanKinds } from './kinds';
import { readModelConfig } from './model-config';
import { realFolder } from './testing/model';

const folder = diskFolder(`${goldens}model`);
const tiny = await readModelConfig(folder);

const real = await readModelConfig(realFolder);

test('reads the configuration in the files’ own names', () => {
  expect(tiny.transformer).toMatchObject({ num_layers: 2, patch_size: [1, 2, 2], eps: 1e-6 });
  expect(transformerDim(tiny.transformer)).toBe(64);
  expect(transformerDim(real.transformer)).toBe(3072);
  expect(tiny.vae.latents_mean).toHaveLength(48);
  expect(tiny.text_encoder.relative_attention_num_buckets).toBe(32);
  expect(tiny.scheduler.flow_shift).toBe(5);
});

test('levels of the VAE, forward', () => {
  const down = encoderBlocks(real.vae).map((b) => [b.in_dim, b.out_dim, b.space, b.time]);
  expect(down).toEqual([
    [160, 160, true, false],
    [160, 320, true, true],
    [320, 640, true, true],
    [640, 640, false, false],
  ]);
  const up = decoderBlocks(real.vae).map((b) => [b.in_dim, b.out_dim, b.space, b.time]);
  expect(up).toEqual([
    [1024, 1024, true, true],
    [1024, 1024, true, true],
    [1024, 512, true, false],
    [512, 256, false, false],
  ]);
});

describe('what cannot run is refused, naming the field', () => {
  const transformer = 'transformer/config.json';
  const vae = 'vae/config.json';
  const text = 'text_encoder/config.json';
  const scheduler = 'scheduler/scheduler_config.json';
  test.each<[string, string, unknown]>([
    ['model_index.json', 'expand_timesteps', false],
    ['model_index.json', 'boundary_ratio', 0.875],
    ['model_index.json', 'transformer_2', ['diffusers', 'WanTransformer3DModel']],
    ['model_index.json', 'image_encoder', ['transformers', 'CLIPVisionModel']],
    ['model_index.json', '_class_name', 'StableDiffusionPipeline'],
    [transformer, 'qk_norm', 'rms_norm'],
    [transformer, 'patch_size', [2, 2, 2]],
    [transformer, 'patch_size', null],
    [transformer, 'in_channels', 36],
    [transformer, 'out_channels', 16],
    [transformer, 'image_dim', 1280],
    [transformer, 'added_kv_proj_dim', 5120],
    [transformer, 'cross_attn_norm', false],
    [transformer, 'num_layers', 0],
    [transformer, 'num_layers', '30'],
    [transformer, 'attention_head_dim', 33],
    [transformer, 'text_dim', 4096],
    [transformer, 'ffn_dim', undefined],
    [vae, 'is_residual', false],
    [vae, 'is_residual', undefined],
    [vae, 'patch_size', null],
    [vae, 'attn_scales', [0.5]],
    [vae, 'latents_mean', [0, 1]],
    [vae, 'latents_std', Array.from({ length: 48 }, () => 0)],
    [vae, 'temperal_downsample', [true, true]],
    [vae, 'scale_factor_spatial', 8],
    [vae, 'scale_factor_temporal', 8],
    [vae, 'in_channels', 3],
    [vae, 'dim_mult', [1, 3, 4, 7]],
    [vae, 'dim_mult', [1, 2, 8, 4]], // the decoder's shortcut would take half a channel
    [vae, 'dim_mult', [1, 2, 4, 8]], // and the encoder's last one
    [text, 'model_type', 't5'],
    [text, 'feed_forward_proj', 'relu'],
    [scheduler, 'prediction_type', 'epsilon'],
    [scheduler, 'use_flow_sigmas', false],
    [scheduler, 'solver_order', 3],
    [scheduler, 'solver_type', 'bh1'],
    [scheduler, 'use_dynamic_shifting', true],
  ])('%s: %s = %j', async (file, field, value) => {
    const json = { ...((await folder.json(file)) as object), [field]: value };
    const patched = patchedFolder(folder, { [file]: JSON.stringify(json) });
    const reading = readModelConfig(patched, wanKinds.wan22);
    await expect(reading).rejects.toMatchObject({ code: 'MODEL_CONFIG_INVALID' });
    await expect(reading).rejects.toThrow(`${file}: ${field}`);
  });

  test('the sentence says what is there and what is needed', async () => {
    const json = { ...((await folder.json(transformer)) as object), qk_norm: 'rms_norm' };
    const patched = patchedFolder(folder, { [transformer]: JSON.stringify(json) });
    await expect(readModelConfig(patched)).rejects.toThrow(
      'transformer/config.json: qk_norm is "rms_norm", expected "rms_norm_across_heads".',
    );
  });

  test('a file that is no JSON or no table', async () => {
    const broken = patchedFolder(folder, { [vae]: '{"z_dim":' });
    await expect(readModelConfig(broken)).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
    const list = patchedFolder(folder, { [vae]: '[]' });
    await expect(readModelConfig(list)).rejects.toMatchObject({ code: 'MODEL_CONFIG_INVALID' });
  });
});
