import type { RecognisedFile } from '../../pipeline/installation';
import {
  type ComponentArchitecture,
  diffusersNaming,
  type Renames,
  renamed,
} from '../naming/component';
import { type Contents, foreign } from '../naming/kinds';
import {
  type TextEncoderConfig,
  textEncoderAliases,
  textEncoderTensors,
} from './text-encoder-config';

/** Names of Wan's `.pth` file (`wan/modules/t5.py`). */
const original: Renames = [
  ['shared', 'token_embedding'],
  ['encoder.final_layer_norm', 'norm'],
  ['encoder.block.', 'blocks.'],
  ['.layer.0.SelfAttention.relative_attention_bias.weight', '.pos_embedding.embedding.weight'],
  ['.layer.0.SelfAttention.', '.attn.'],
  ['.layer.0.layer_norm', '.norm1'],
  ['.layer.1.DenseReluDense.wi_0', '.ffn.gate.0'],
  ['.layer.1.DenseReluDense.wi_1', '.ffn.fc1'],
  ['.layer.1.DenseReluDense.wo', '.ffn.fc2'],
  ['.layer.1.layer_norm', '.norm2'],
];

/** The name of a tensor of the text encoder in Wan's own file. */
export function originalTextEncoderName(name: string): string {
  return renamed(name, original);
}

/** Names of llama.cpp's GGUF files (`gguf-py/gguf/tensor_mapping.py`, `T5ENCODER`). */
const llamaCpp: Renames = [
  ['shared', 'token_embd'],
  ['encoder.final_layer_norm', 'enc.output_norm'],
  ['encoder.block.', 'enc.blk.'],
  ['.layer.0.SelfAttention.relative_attention_bias', '.attn_rel_b'],
  ['.layer.0.SelfAttention.', '.attn_'],
  ['.layer.0.layer_norm', '.attn_norm'],
  ['.layer.1.DenseReluDense.wi_0', '.ffn_gate'],
  ['.layer.1.DenseReluDense.wi_1', '.ffn_up'],
  ['.layer.1.DenseReluDense.wo', '.ffn_down'],
  ['.layer.1.layer_norm', '.ffn_norm'],
];

/** The name of a tensor of the text encoder in llama.cpp's t5encoder files. */
export function llamaCppTextEncoderName(name: string): string {
  return renamed(name, llamaCpp);
}

/** The text encoder, as weight files may have it. */
export function textEncoderArchitecture(config: TextEncoderConfig): ComponentArchitecture {
  return {
    name: 'text encoder',
    tensors: () => textEncoderTensors(config),
    namings: [
      diffusersNaming,
      { name: 'original', rename: originalTextEncoderName },
      { name: 'llama.cpp', rename: llamaCppTextEncoderName },
    ],
    prefixes: ['', 'model.', 'text_encoder.'],
    aliases: textEncoderAliases,
  };
}

const t5Block =
  /^encoder\.block\.\d+\.layer\.|^enc\.blk\.\d+\.|^blocks\.\d+\.(attn\.[qkvo]|pos_embedding\.embedding|ffn\.gate\.0|ffn\.fc[12])\./;
const t5Decoder = /^decoder\.block\.\d+\.|^dec\.blk\.\d+\./;
const t5Vocabulary = /^(shared|encoder\.embed_tokens|token_embd|token_embedding)\.weight$/;
/** Token counts of the public T5 families. */
const t5Families: Readonly<Record<number, string>> = { 32128: 'T5', 250112: 'mT5' };

/** Recognises T5 and its kin: only the encoder of UMT5 serves, and its vocabulary tells which it is. */
export function umt5(contents: Contents): RecognisedFile | null {
  if (!contents.has(t5Block) && !contents.has(t5Decoder)) {
    // A shard may hold nothing but the embedding; that of a GGUF file may be of any text model.
    const { architecture = 't5encoder', names } = contents;
    const embedding = names.length > 0 && names.every((name) => t5Vocabulary.test(name));
    if (embedding && architecture.startsWith('t5')) {
      return { name: 'a text encoder', component: 'text_encoder' };
    }
    return null;
  }
  const vocabulary = contents.shape(t5Vocabulary)?.at(0);
  const family = vocabulary === undefined ? undefined : t5Families[vocabulary];
  if (contents.has(t5Decoder)) {
    return foreign(`a whole ${family ?? 'T5'} text model with its decoder`);
  }
  if (family) return foreign(`a ${family} text encoder, not a UMT5 one`);
  return { name: 'a UMT5 text encoder', component: 'text_encoder' };
}
