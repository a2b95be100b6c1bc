import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkpointOf, locateTensors } from '../../weights';
import { diskFolder } from '../../weights/testing/files';
import { checkLora } from '../layers/lora';
import { loraArchitectureOf } from './lora';
import { readModelConfig, readVideoConfig } from './model-config';
import { safetensorsOf } from './testing/checkpoints';
import { realFolder } from './testing/model';

const architectureOf = async (name: string) =>
  loraArchitectureOf(
    await readVideoConfig(
      diskFolder(fileURLToPath(new URL(`./goldens/${name}/model/`, import.meta.url))),
    ),
  );
let wan21: Awaited<ReturnType<typeof architectureOf>>;
let a14b: typeof wan21;
beforeAll(async () => {
  [wan21, a14b] = [await architectureOf('tiny-wan21-i2v'), await architectureOf('tiny-wan22-a14b')];
});

async function targets(shapes: Record<string, number[]>, architecture: typeof wan21) {
  const file = await safetensorsOf(new Map(Object.entries(shapes)));
  return [...checkLora(checkpointOf('lora', locateTensors([file])), architecture, 'lora').keys()];
}

const factors = (down: string, up: string) => ({ [down]: [4, 64], [up]: [64, 4] });

describe('layouts of files for the 14B models', () => {
  test.each([
    [
      'ComfyUI',
      factors(
        'diffusion_model.blocks.1.cross_attn.k_img.lora_down.weight',
        'diffusion_model.blocks.1.cross_attn.k_img.lora_up.weight',
      ),
      'blocks.1.attn2.add_k_proj',
    ],
    [
      'kohya',
      factors(
        'lora_unet_blocks_1_cross_attn_v_img.lora_down.weight',
        'lora_unet_blocks_1_cross_attn_v_img.lora_up.weight',
      ),
      'blocks.1.attn2.add_v_proj',
    ],
    [
      'diffusers',
      factors(
        'transformer.blocks.0.attn2.add_k_proj.lora_A.weight',
        'transformer.blocks.0.attn2.add_k_proj.lora_B.weight',
      ),
      'blocks.0.attn2.add_k_proj',
    ],
    [
      'lightx2v, norm of the image keys',
      { 'diffusion_model.blocks.0.cross_attn.norm_k_img.diff': [64] },
      'blocks.0.attn2.norm_added_k',
    ],
    [
      'lightx2v, embedder',
      { 'diffusion_model.img_emb.proj.1.diff_b': [32] },
      'condition_embedder.image_embedder.ff.net.0.proj',
    ],
  ])('%s: the image branch is found by Wan2.1 and left out by A14B', async (_, keys, target) => {
    const table = { 'diffusion_model.blocks.0.diff_m': [1, 6, 64] };
    const shapes = { ...keys, ...table };
    expect(await targets(shapes, wan21)).toEqual([target, 'blocks.0.scale_shift_table']);
    expect(await targets(shapes, a14b)).toEqual(['blocks.0.scale_shift_table']);
  });

  test('head and norm without factors are changed, too', async () => {
    const shapes = {
      'diffusion_model.head.head.diff': [64, 64],
      'diffusion_model.blocks.0.norm3.diff': [64],
    };
    expect(await targets(shapes, a14b)).toEqual(['proj_out', 'blocks.0.norm2']);
  });

  test('the base is told by widths: one of the 14B is refused by the 5B, by name', async () => {
    const five = loraArchitectureOf(await readModelConfig(realFolder));
    const name = 'diffusion_model.blocks.0.self_attn.q';
    const wide = { [`${name}.lora_down.weight`]: [4, 5120], [`${name}.lora_up.weight`]: [5120, 4] };
    await expect(targets(wide, five)).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
      message: expect.stringContaining('Wan 14B'),
    });
  });
});
