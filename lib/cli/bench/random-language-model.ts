import { open } from 'node:fs/promises';
import type { GgufHeader } from '../../weights/formats/gguf';
import {
  type GgufTestTensor,
  type GgufTestValue,
  ggufHeader,
  list,
  text,
  u32,
} from '../../weights/testing/gguf';

/** The shape of Qwen3-0.6B (config.json of Qwen/Qwen3-0.6B). */
const shape = {
  layers: 28,
  channels: 1024,
  heads: 16,
  keyHeads: 8,
  headChannels: 128,
  hidden: 3072,
  vocabulary: 151_936,
  context: 40_960,
};

/** GGML types, and the bytes of a Q8_0 block: a scale in f16 and 32 numbers of 8 bits. */
const [f32, q8] = [0, 8] as const;
const blockBytes = 34;
/** 0.0003 in f16, so that weights spread over about ±0.04. */
const scale = 0x0cea;
const alignment = 32;

/**
 * Writes a GGUF file that llama.cpp takes for Qwen3-0.6B in Q8_0: its tensors with random numbers, and
 * the vocabulary of the small model of the goldens, filled up to its size.
 *
 * @param small header of that small model
 * @returns bytes of the file
 */
export async function writeRandomLanguageModel(file: string, small: GgufHeader): Promise<number> {
  const tensors = tensorsOf();
  const header = ggufHeader({ metadata: metadataOf(small), tensors, alignment });
  const numbers = randomBlocks(2 ** 17);
  const ones = new Uint8Array(new Float32Array(shape.channels).fill(1).buffer);
  const out = await open(file, 'w');
  try {
    await out.write(header);
    let written = header.length;
    for (const { type, bytes } of tensors) {
      const source = type === f32 ? ones : numbers;
      for (let done = 0; done < bytes; done += source.length) {
        await out.write(source.subarray(0, Math.min(source.length, bytes - done)));
      }
      const padding = -bytes & (alignment - 1);
      await out.write(new Uint8Array(padding));
      written += bytes + padding;
    }
    return written;
  } finally {
    await out.close();
  }
}

function tensorsOf(): GgufTestTensor[] {
  const { layers, channels, heads, keyHeads, headChannels, hidden, vocabulary } = shape;
  const norm = (name: string, width: number) => ({
    name,
    shape: [width],
    type: f32,
    bytes: width * 4,
  });
  const matrix = (name: string, rows: number, columns: number) => ({
    name,
    shape: [rows, columns],
    type: q8,
    bytes: ((rows * columns) / 32) * blockBytes,
  });
  const all = [
    matrix('token_embd.weight', vocabulary, channels),
    norm('output_norm.weight', channels),
  ];
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `blk.${layer}.${part}.weight`;
    all.push(
      norm(name('attn_norm'), channels),
      norm(name('ffn_norm'), channels),
      matrix(name('attn_q'), heads * headChannels, channels),
      matrix(name('attn_k'), keyHeads * headChannels, channels),
      matrix(name('attn_v'), keyHeads * headChannels, channels),
      matrix(name('attn_output'), channels, heads * headChannels),
      norm(name('attn_q_norm'), headChannels),
      norm(name('attn_k_norm'), headChannels),
      matrix(name('ffn_gate'), hidden, channels),
      matrix(name('ffn_up'), hidden, channels),
      matrix(name('ffn_down'), channels, hidden),
    );
  }
  return all;
}

function metadataOf({ metadata }: GgufHeader): Record<string, GgufTestValue> {
  const texts = (key: string) => metadata.get(`tokenizer.${key}`) as readonly string[];
  const types = metadata.get('tokenizer.ggml.token_type') as Int32Array;
  const tokens = [...texts('ggml.tokens')];
  const tokenTypes = [...types];
  while (tokens.length < shape.vocabulary) {
    tokens.push(`[PAD${tokens.length}]`);
    tokenTypes.push(1);
  }
  const number = (key: string) => u32(Number(metadata.get(`tokenizer.ggml.${key}`)));
  return {
    'general.architecture': text('qwen3'),
    'general.name': text('Random weights in the shape of Qwen3-0.6B'),
    'qwen3.context_length': u32(shape.context),
    'qwen3.embedding_length': u32(shape.channels),
    'qwen3.block_count': u32(shape.layers),
    'qwen3.feed_forward_length': u32(shape.hidden),
    'qwen3.attention.head_count': u32(shape.heads),
    'qwen3.attention.head_count_kv': u32(shape.keyHeads),
    'qwen3.attention.key_length': u32(shape.headChannels),
    'qwen3.attention.value_length': u32(shape.headChannels),
    'qwen3.attention.layer_norm_rms_epsilon': { type: 6, value: 1e-6 },
    'qwen3.rope.freq_base': { type: 6, value: 1e6 },
    'general.file_type': u32(7),
    'tokenizer.ggml.model': text('gpt2'),
    'tokenizer.ggml.pre': text('qwen2'),
    'tokenizer.ggml.tokens': list(8, tokens),
    'tokenizer.ggml.token_type': list(5, tokenTypes),
    'tokenizer.ggml.merges': list(8, texts('ggml.merges')),
    'tokenizer.ggml.eos_token_id': number('eos_token_id'),
    'tokenizer.ggml.padding_token_id': number('padding_token_id'),
    'tokenizer.ggml.bos_token_id': number('bos_token_id'),
    'tokenizer.ggml.add_bos_token': { type: 7, value: 0 },
    'tokenizer.chat_template': text(String(metadata.get('tokenizer.chat_template'))),
  };
}

/** Q8_0 blocks with random numbers. */
function randomBlocks(count: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(count * blockBytes);
  for (let at = 0; at < bytes.length; at += 2 ** 16) {
    crypto.getRandomValues(bytes.subarray(at, at + 2 ** 16));
  }
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += blockBytes) view.setUint16(at, scale, true);
  return bytes;
}
