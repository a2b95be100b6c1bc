/**
 * The names that public files use, from those of diffusers: the original ones of Wan, which GGUF files
 * of the transformer and ComfyUI's files keep.
 */
import { type Renames, renamed } from '../naming/component';
import type { VaeConfig } from './config-schemas';

/** `scripts/convert_wan_to_diffusers.py` of diffusers, read backwards. */
const transformer: Renames = [
  ['condition_embedder.time_embedder.linear_1', 'time_embedding.0'],
  ['condition_embedder.time_embedder.linear_2', 'time_embedding.2'],
  ['condition_embedder.time_proj', 'time_projection.1'],
  ['condition_embedder.text_embedder.linear_1', 'text_embedding.0'],
  ['condition_embedder.text_embedder.linear_2', 'text_embedding.2'],
  ['proj_out', 'head.head'],
  [/^scale_shift_table/, 'head.modulation'],
  ['.scale_shift_table', '.modulation'],
  ['.attn1.', '.self_attn.'],
  ['.attn2.', '.cross_attn.'],
  ['.to_out.0', '.o'],
  ['.to_', '.'],
  ['.ffn.net.0.proj', '.ffn.0'],
  ['.ffn.net.2', '.ffn.2'],
  ['.add_k_proj', '.k_img'],
  ['.add_v_proj', '.v_img'],
  ['.norm_added_k', '.norm_k_img'],
  ['condition_embedder.image_embedder.norm1', 'img_emb.proj.0'],
  ['condition_embedder.image_embedder.ff.net.0.proj', 'img_emb.proj.1'],
  ['condition_embedder.image_embedder.ff.net.2', 'img_emb.proj.3'],
  ['condition_embedder.image_embedder.norm2', 'img_emb.proj.4'],
  // The original counts its norms otherwise: its norm3 is the affine one before cross-attention.
  ['.norm2', '.norm3'],
];

/** The original name of a tensor or module of the transformer. */
export function originalTransformerName(name: string): string {
  return renamed(name, transformer);
}

const vae: Renames = [
  [/^quant_conv/, 'conv1'],
  [/^post_quant_conv/, 'conv2'],
  [/^(encoder|decoder)\.conv_in/, '$1.conv1'],
  ['mid_block.resnets.0', 'middle.0'],
  ['mid_block.attentions.0', 'middle.1'],
  ['mid_block.resnets.1', 'middle.2'],
  ['.norm_out.', '.head.0.'],
  ['.conv_out.', '.head.2.'],
  [/down_blocks\.(\d+)\.resnets/, 'downsamples.$1.downsamples'],
  [/up_blocks\.(\d+)\.resnets/, 'upsamples.$1.upsamples'],
];

const residual: Renames = [
  ['.norm1.', '.residual.0.'],
  ['.conv1.', '.residual.2.'],
  ['.norm2.', '.residual.3.'],
  ['.conv2.', '.residual.6.'],
  ['.conv_shortcut.', '.shortcut.'],
];

/**
 * The original name of a tensor of the VAE: `convert_vae` and, with shortcuts, `convert_vae_22` of diffusers, read
 * backwards.
 *
 * @param config says how many residual blocks come before a level's resampler, which the original
 * counts as one more of them
 */
export function originalVaeName(
  name: string,
  config: Pick<VaeConfig, 'num_res_blocks' | 'is_residual'>,
): string {
  const { num_res_blocks: blocks, is_residual: nested } = config;
  const ofBlock = nested ? /\.resnets\.\d+\./ : /(\.resnets|down_blocks)\.\d+\./;
  const inner = ofBlock.test(name) ? renamed(name, residual) : name;
  if (!nested) {
    // All levels of a side are counted in one sequence.
    return renamed(inner, [
      ...vae.slice(0, -2),
      ['down_blocks.', 'downsamples.'],
      [
        /up_blocks\.(\d+)\.(resnets|upsamplers)\.(\d+)/,
        (_, level, kind, index) =>
          `upsamples.${Number(level) * (blocks + 2) + (kind === 'resnets' ? Number(index) : blocks + 1)}`,
      ],
    ]);
  }
  return renamed(inner, [
    ...vae,
    [/down_blocks\.(\d+)\.downsampler/, `downsamples.$1.downsamples.${blocks}`],
    [/up_blocks\.(\d+)\.upsampler/, `upsamples.$1.upsamples.${blocks + 1}`],
  ]);
}
