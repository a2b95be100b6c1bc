import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { diskFolder } from '../../weights/testing/files';
import { readTextEncoderConfig } from '../umt5/config';
import { planWan, usualChoice } from '../wan/plan';
import { realFolder } from '../wan22/testing/model';
import { readVideoConfig } from './config';
import { featureRows } from './image-encoder/config';
import { countImageEncoder } from './image-encoder/image-encoder';

const modelOf = (name: string) =>
  diskFolder(fileURLToPath(new URL(`./goldens/${name}/model/`, import.meta.url)));
const gib = 2 ** 30;

/** The sizes of the real models. */
async function realConfig(name: string) {
  const { transformer, vae, image_encoder: encoder } = await readVideoConfig(modelOf(name));
  const sizes = { num_layers: 40, num_attention_heads: 40, attention_head_dim: 128 };
  const image = { image_dim: encoder && 1280, added_kv_proj_dim: encoder && 5120 };
  const vision = { hidden_size: 1280, intermediate_size: 5120, num_attention_heads: 16 };
  return {
    transformer: { ...transformer, ...sizes, ffn_dim: 13_824, text_dim: 4096, ...image },
    vae: { ...vae, base_dim: 96, decoder_base_dim: 96 },
    text_encoder: await readTextEncoderConfig(realFolder),
    image_encoder: encoder && { ...encoder, ...vision, num_hidden_layers: 32, image_size: 224 },
  };
}

async function plannerOf(name: string, width: number, height: number) {
  const { image_encoder: encoder, ...config } = await realConfig(name);
  const kernels = usualChoice('exact');
  return planWan(config, 'int4', {
    native: { width, height, frames: 81 },
    kernels,
    given: [],
    // Few steps run without guidance.
    promptTokens: [512],
    ...(encoder && {
      imageRows: featureRows(encoder),
      imageEncoder: await countImageEncoder(encoder, kernels),
    }),
  });
}

test.each(['tiny-wan22-a14b', 'tiny-wan21-i2v'])(
  '81 frames of 832×480 in 4 bits fit 8 GiB with streamed blocks and 12 GiB without, like %s',
  async (name) => {
    const planner = await plannerOf(name, 832, 480);
    const { least, full } = planner;
    expect(least.tokens).toBe(32_760);
    expect(least.peak).toBeLessThan(4 * gib);
    expect(planner.fit(8 * gib).peak).toBeLessThan(8 * gib);
    expect(full.peak).toBeLessThan(12 * gib);
  },
);
