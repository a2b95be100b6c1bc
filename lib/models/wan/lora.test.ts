import { describe, expect, test } from 'vitest';
import { fromBF16, relativeRms, toBF16 } from '../../gpu';
import {
  checkpointFrom,
  diskFolder,
  f32,
  goldens,
  openGolden,
  safetensorsBytes,
  type TestTensor,
} from '../../weights/testing/files';
import { checkLora, combineLoras, type Lora, parseLora, readLoras } from '../layers/lora';
import { loraArchitectureOf } from './lora';
import { readModelConfig } from './model-config';

const tiny = await readModelConfig(diskFolder(`${goldens}model`));
const architecture = loraArchitectureOf(tiny);
const open = async (name: string) =>
  parseLora(await openGolden(`loras/${name}.safetensors`), architecture, name);
const made = async (tensors: Record<string, TestTensor>, metadata?: Record<string, string>) =>
  parseLora(await checkpointFrom(tensors, metadata), architecture, 'made');

/** Values that differ everywhere. */
const ramp = (shape: number[], step = 0.01): TestTensor => {
  const count = shape.reduce((all, n) => all * n, 1);
  return f32(
    shape,
    Array.from({ length: count }, (_, i) => ((i * 7) % 31) * step - 0.1),
  );
};

/** up · down, [out, in]. */
function change(
  lora: { rank: number; down: ArrayLike<number>; up: ArrayLike<number> } | undefined,
  out: number,
): Float32Array {
  if (!lora) throw new Error('no branch');
  const { rank, down, up } = lora;
  const inner = down.length / rank;
  return Float32Array.from({ length: out * inner }, (_, at) => {
    let sum = 0;
    for (let r = 0; r < rank; r++) {
      sum += (up[Math.floor(at / inner) * rank + r] ?? 0) * (down[r * inner + (at % inner)] ?? 0);
    }
    return sum;
  });
}

describe('golden files', () => {
  // That the three layouts of adapter a mean the same is checked by lines of the parity.
  test('the kohya file’s alpha is not its rank, so that it counts', async () => {
    const factors = [...(await open('a_kohya_alpha')).modules.values()].flat();
    expect(factors.every(({ factor }) => factor !== 1)).toBe(true);
  });

  test('adapter b has bias deltas', async () => {
    const file = await openGolden('loras/b_lightx2v_diff_b.safetensors');
    const { branches, deltas } = combineLoras(
      [{ lora: await parseLora(file, architecture, 'b'), scale: 1.7 }],
      architecture,
    );
    expect(branches.size).toBe(20);
    expect(deltas.size).toBe(20);
    const stored = await file.read('diffusion_model.blocks.0.cross_attn.o.diff_b');
    expect(deltas.get('blocks.0.attn2.to_out.0.bias')).toEqual(stored.map((x) => x * 1.7));
    const up = await file.read('diffusion_model.blocks.0.ffn.0.lora_up.weight');
    expect(branches.get('blocks.0.ffn.net.0.proj')?.up).toEqual(up.map((x) => x * 1.7));
  });

  test('a 14B adapter is refused in one sentence with both shapes and the base', async () => {
    await expect(open('wrong_base_14b')).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
      message:
        'The LoRA "wrong_base_14b" was made for another base model (Wan 14B): for blocks.0.attn1.to_q it has the shape [5120,5120], this model has [64,64].',
    });
  });
});

describe('combineLoras', () => {
  test('adapters add up along the rank', async () => {
    const [a, b] = [await open('a_peft'), await open('b_lightx2v_diff_b')];
    const both = combineLoras(
      [
        { lora: a, scale: 0.8 },
        { lora: b, scale: 1.7 },
        { lora: a, scale: 0.5 },
      ],
      architecture,
    );
    const onlyA = combineLoras([{ lora: a, scale: 1.3 }], architecture);
    const onlyB = combineLoras([{ lora: b, scale: 1.7 }], architecture);
    for (const [name, branch] of both.branches) {
      expect(branch.rank).toBe(12);
      const out = branch.up.length / 12;
      const one = change(onlyA.branches.get(name), out);
      const two = change(onlyB.branches.get(name), out);
      const sum = one.map((x, i) => x + (two[i] ?? 0));
      expect(relativeRms(change(branch, out), sum)).toBeLessThan(1e-6);
    }
    expect(both.deltas).toEqual(onlyB.deltas);
  });

  test('scale 0 leaves nothing, no adapter neither', async () => {
    const lora = await open('b_lightx2v_diff_b');
    for (const list of [[], [{ lora, scale: 0 }]]) {
      const { branches, deltas } = combineLoras(list, architecture);
      expect([branches.size, deltas.size]).toEqual([0, 0]);
    }
  });
});

describe('layouts', () => {
  const down = ramp([2, 64]);
  const up = ramp([64, 2]);
  const q = 'blocks.1.attn1.to_q';

  test.each([
    ['transformer.blocks.1.attn1.to_q', 'lora_A.weight', 'lora_B.weight'],
    ['transformer.blocks.1.attn1.to_q', 'lora_A.default.weight', 'lora_B.default.weight'],
    ['base_model.model.blocks.1.attn1.to_q', 'lora_A.default_0.weight', 'lora_B.default_0.weight'],
    ['blocks.1.attn1.to_q', 'lora_A.My style-v2.weight', 'lora_B.My style-v2.weight'],
    ['base_model.model.blocks.1.attn1.to_q', 'lora_A.weight', 'lora_B.weight'],
    ['blocks.1.self_attn.q', 'lora_A.default.weight', 'lora_B.default.weight'],
    ['diffusion_model.blocks.1.self_attn.q', 'lora_A.weight', 'lora_B.weight'],
    ['model.diffusion_model.blocks.1.self_attn.q', 'lora_down.weight', 'lora_up.weight'],
    ['lora_unet_blocks_1_self_attn_q', 'lora_down.weight', 'lora_up.weight'],
    ['lora_unet__blocks_1_self_attn_q', 'lora_down.weight', 'lora_up.weight'],
    ['lora_unet_blocks_1_attn1_to_q', 'lora_down.weight', 'lora_up.weight'],
    ['lora_unet_blocks_1.self_attn.q', 'lora_down.weight', 'lora_up.weight'],
    ['lora_unet.blocks.1.attn1.to_q', 'lora_down.weight', 'lora_up.weight'],
    ['lycoris_blocks_1_self_attn_q', 'lora_down.weight', 'lora_up.weight'],
  ])('%s.%s', async (stem, first, second) => {
    const lora = await made({ [`${stem}.${first}`]: down, [`${stem}.${second}`]: up });
    expect([...lora.modules.keys()]).toEqual([q]);
    const [factors] = lora.modules.get(q) ?? [];
    expect(factors).toMatchObject({ rank: 2, factor: 1 });
    expect(factors?.down).toEqual(down.data);
    expect(factors?.up).toEqual(up.data);
  });

  test.each([
    ['time_embedding.0', 'condition_embedder.time_embedder.linear_1', [64, 256]],
    ['time_embedding.2', 'condition_embedder.time_embedder.linear_2', [64, 64]],
    ['time_projection.1', 'condition_embedder.time_proj', [384, 64]],
    ['text_embedding.0', 'condition_embedder.text_embedder.linear_1', [64, 64]],
    ['text_embedding.2', 'condition_embedder.text_embedder.linear_2', [64, 64]],
    ['head.head', 'proj_out', [192, 64]],
    ['blocks.0.cross_attn.o', 'blocks.0.attn2.to_out.0', [64, 64]],
    ['blocks.0.ffn.0', 'blocks.0.ffn.net.0.proj', [128, 64]],
    ['blocks.0.ffn.2', 'blocks.0.ffn.net.2', [64, 128]],
  ])('%s is %s', async (original, module, [out = 0, inner = 0]) => {
    for (const stem of [
      `diffusion_model.${original}`,
      `lora_unet_${original.replaceAll('.', '_')}`,
    ]) {
      const lora = await made({
        [`${stem}.lora_down.weight`]: ramp([2, inner]),
        [`${stem}.lora_up.weight`]: ramp([out, 2]),
      });
      expect([...lora.modules.keys()]).toEqual([module]);
    }
  });

  test('alpha divides by the rank', async () => {
    const stem = 'lora_unet_blocks_1_self_attn_q';
    const lora = await made({
      [`${stem}.lora_down.weight`]: down,
      [`${stem}.lora_up.weight`]: up,
      [`${stem}.alpha`]: f32([], [1]),
    });
    const branch = combineLoras([{ lora, scale: 3 }], architecture).branches.get(q);
    // Rows and columns of zeros make the rank a multiple of 4.
    const padded = (up.data as Float32Array).map((x) => x * 1.5);
    expect(branch?.rank).toBe(4);
    expect(branch?.up.filter((_, i) => i % 4 < 2)).toEqual(padded);
    expect(branch?.up.filter((_, i) => i % 4 > 1).every((x) => x === 0)).toBe(true);
    expect(branch?.down).toEqual(new Float32Array([...down.data, ...new Float32Array(2 * 64)]));
  });

  test('factors stay in the type that most of their rank came in, f32 bit for bit', async () => {
    const stem = 'diffusion_model.blocks.1.self_attn.q';
    const of = (rank: number, dtype: 'F32' | 'BF16') => {
      const tensors = { down: ramp([rank, 64]), up: ramp([64, rank], 0.003) };
      return made(
        Object.fromEntries(
          Object.entries(tensors).map(([role, { shape, data }]) => {
            const stored =
              dtype === 'F32' ? data : new Uint8Array(toBF16(data as Float32Array).buffer);
            return [`${stem}.lora_${role}.weight`, { dtype, shape, data: stored }];
          }),
        ),
      );
    };
    const branchOf = async (...loras: Promise<Lora>[]) => {
      const all = (await Promise.all(loras)).map((lora) => ({ lora, scale: 0.7 }));
      return combineLoras(all, architecture).branches.get(q);
    };
    const narrow = await branchOf(of(6, 'BF16'));
    expect(narrow?.rank).toBe(8);
    expect(narrow?.up).toBeInstanceOf(Uint16Array);
    const wide = await branchOf(of(6, 'F32'));
    const first = (ramp([64, 6], 0.003).data as Float32Array).map((x) => x * 0.7);
    expect(wide?.up.filter((_, i) => i % 8 < 6)).toEqual(first);
    const up = fromBF16(narrow?.up as Uint16Array);
    expect(relativeRms(up, wide?.up as Float32Array)).toBeLessThan(4e-3);
    // A small adapter in f32 beside a large one in bf16, and the other way round.
    expect((await branchOf(of(2, 'F32'), of(6, 'BF16')))?.up).toBeInstanceOf(Uint16Array);
    expect((await branchOf(of(6, 'F32'), of(2, 'BF16')))?.up).toBeInstanceOf(Float32Array);
  });

  const files = {
    [`transformer.${q}.lora_A.weight`]: down,
    [`transformer.${q}.lora_B.weight`]: up,
  };
  const strengthOf = async (metadata: Record<string, string> = {}, more = {}) => {
    const { modules, notes } = await made({ ...files, ...more }, metadata);
    return { factor: modules.get(q)?.[0]?.factor, notes };
  };

  test('PEFT’s alpha comes from diffusers’ metadata', async () => {
    const factor = async (metadata?: object) => {
      const text = metadata && { lora_adapter_metadata: JSON.stringify(metadata) };
      const { factor: read, notes } = await strengthOf(text);
      expect(notes).toEqual([]);
      return read;
    };
    expect(await factor()).toBe(1);
    expect(await factor({ 'transformer.r': 2, 'transformer.lora_alpha': 8 })).toBe(4);
    expect(
      await factor({ 'transformer.lora_alpha': 8, 'transformer.use_rslora': true }),
    ).toBeCloseTo(8 / Math.SQRT2);
    expect(
      await factor({
        'transformer.lora_alpha': 8,
        'transformer.alpha_pattern': { 'attn1.to_q': 1 },
      }),
    ).toBe(0.5);
    // What diffusers writes for a transformer alone has no prefix.
    expect(await factor({ r: 2, lora_alpha: 8 })).toBe(4);
    expect(await factor({ 'text_encoder.lora_alpha': 8 })).toBe(1);
  });

  test.each([
    ['each field as an entry', { 'transformer.lora_alpha': '1', 'transformer.r': '2' }],
    ['without a prefix', { lora_alpha: '1.0' }],
    ['finetrainers', { lora_config: '{"r": 2, "lora_alpha": 1, "init_lora_weights": true}' }],
    ['numbers as text', { lora_adapter_metadata: '{"transformer.lora_alpha": "1"}' }],
    [
      'odd fields beside it',
      {
        lora_adapter_metadata:
          '{"transformer.lora_alpha":1,"transformer.alpha_pattern":null,"transformer.use_rslora":null,"transformer.lora_dropout":"?"}',
      },
    ],
    ['as Python writes it', { lora_alpha: '1', use_rslora: 'False', alpha_pattern: 'None' }],
    ['the pattern as text', { lora_alpha: '9', alpha_pattern: '{"to_q": "1"}' }],
  ])('alpha is read from metadata: %s', async (_, metadata) => {
    expect(await strengthOf(metadata)).toEqual({ factor: 0.5, notes: [] });
  });

  // `get_pattern_key` of PEFT: `re.match(rf"(.*\.)?({key})$", name)`, the first key that matches.
  test.each([
    ['to_q', 1],
    ['attn1.to_q', 1],
    ['o_q', 9],
    ['1.to_q', 9],
    ['attn1', 9],
    ['blocks\\.[01]\\.attn1\\.to_[qk]', 1],
    ['attn1.to_(q|k)', 1],
    ['to_k|to_q', 1],
    ['^blocks.1.attn1.to_q', 1],
    ['^attn1.to_q', 9],
    ['.*attn1.*', 1],
    ['blocks\\.\\d+\\.self_attn\\.q', 1],
    ['attn1.to_', 9],
  ])('alpha_pattern %s is matched as PEFT does', async (pattern, alpha) => {
    const record = { lora_alpha: 9, alpha_pattern: { other: 5, [pattern]: 1, '.*': 9 } };
    const { factor, notes } = await strengthOf({ lora_adapter_metadata: JSON.stringify(record) });
    expect({ factor, notes }).toEqual({ factor: alpha / 2, notes: [] });
  });

  test.each([
    ['metadata that is no JSON', { lora_adapter_metadata: 'not json' }, 1, /lora_adapter_metadata/],
    ['alpha that is none', { lora_alpha: 'high', r: '2' }, 1, /lora_alpha/],
    [
      'two values',
      { lora_alpha: '4', 'transformer.lora_alpha': '8' },
      4,
      /two values of lora_alpha/,
    ],
    ['another rank', { lora_alpha: '8', r: '64' }, 4, /rank in its metadata/],
    ['no expression', { lora_alpha: '8', alpha_pattern: '{"(to_q": 1}' }, 4, /"\(to_q"/],
    ['one odd entry', { alpha_pattern: '{"x": [], "to_q": 8}' }, 4, /alpha_pattern "x"/],
  ])('what cannot be read or contradicts is said: %s', async (_, metadata, factor, note) => {
    expect(await strengthOf(metadata)).toEqual({ factor, notes: [expect.stringMatching(note)] });
  });

  test('alpha of tensors wins over that of metadata, and the difference is said', async () => {
    const alpha = { [`transformer.${q}.alpha`]: f32([], [4]) };
    const same = await strengthOf({ lora_alpha: '4' }, alpha);
    expect(same).toEqual({ factor: 2, notes: [] });
    const other = await strengthOf({ lora_alpha: '1' }, alpha);
    expect(other).toEqual({ factor: 2, notes: [expect.stringContaining('"made": the alpha in')] });
  });

  test('an expression that would take for ever is not tried', async () => {
    const started = performance.now();
    const bad = { '(\\w+\\.?)+!': 1, '(.|.)?(.|.)?(.|.)?(.|.)?!': 1, '.*.*.*.*.*.*.*.*.*!': 1 };
    const { notes } = await strengthOf({ alpha_pattern: JSON.stringify(bad) });
    expect(notes).toHaveLength(3);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  test.each([
    ['I64', new BigInt64Array([4n])],
    ['U64', new BigUint64Array([4n])],
    ['I32', new Int32Array([4])],
    ['U32', new Uint32Array([4])],
    ['I16', new Int16Array([4])],
    ['U16', new Uint16Array([4])],
    ['I8', new Int8Array([4])],
    ['U8', new Uint8Array([4])],
    ['F64', new Float64Array([4])],
    ['BF16', new Uint16Array([0x4080])],
    ['F16', new Uint16Array([0x4400])],
  ])('alpha is read as %s', async (dtype, data) => {
    const bytes = new Uint8Array(data.buffer);
    const alpha = { [`transformer.${q}.alpha`]: { dtype, shape: [], data: bytes } };
    expect(await strengthOf({}, alpha)).toEqual({ factor: 2, notes: [] });
  });

  test('factors in f64 are read', async () => {
    const wide = ({ shape, data }: TestTensor) => ({
      dtype: 'F64',
      shape,
      data: new Uint8Array(Float64Array.from(data as Float32Array).buffer),
    });
    const keys = Object.keys(files) as [string, string];
    const lora = await made({ [keys[0]]: wide(down), [keys[1]]: wide(up) });
    expect(lora.modules.get(q)?.[0]?.down).toEqual(down.data);
  });
});

describe('lightx2v deltas', () => {
  test('of norms, biases and modulation become deltas', async () => {
    const lora = await made({
      'diffusion_model.blocks.0.norm3.diff': ramp([64]),
      'diffusion_model.blocks.0.norm3.diff_b': ramp([64]),
      'diffusion_model.blocks.1.self_attn.norm_q.diff': ramp([64]),
      'diffusion_model.blocks.0.diff_m': ramp([1, 6, 64]),
      'diffusion_model.blocks.1.modulation.diff_m': ramp([6, 64]),
      'diffusion_model.head.diff_m': ramp([1, 2, 64]),
      'diffusion_model.head.head.diff_b': ramp([192]),
      'diffusion_model.patch_embedding.diff_b': ramp([64]),
    });
    const { branches, deltas } = combineLoras([{ lora, scale: 2 }], architecture);
    expect(branches.size).toBe(0);
    expect([...deltas.keys()].sort()).toEqual([
      'blocks.0.norm2.bias',
      'blocks.0.norm2.weight',
      'blocks.0.scale_shift_table',
      'blocks.1.attn1.norm_q.weight',
      'blocks.1.scale_shift_table',
      'patch_embedding.bias',
      'proj_out.bias',
      'scale_shift_table',
    ]);
    const values = ramp([64]).data as Float32Array;
    expect(deltas.get('blocks.0.norm2.bias')).toEqual(values.map((x) => x * 2));
  });

  test.each([
    ['diffusion_model.head.head', 'proj_out', [192, 64]],
    ['diffusion_model.blocks.0.ffn.2', 'blocks.0.ffn.net.2', [64, 128]],
    ['diffusion_model.blocks.0.ffn.0', 'blocks.0.ffn.net.0.proj', [128, 64]],
    ['diffusion_model.patch_embedding', 'patch_embedding', [64, 48, 1, 2, 2]],
  ])('a whole difference of %s is a branch of full rank', async (stem, module, shape) => {
    const diff = ramp(shape);
    const lora = await made({ [`${stem}.diff`]: diff });
    const branch = combineLoras([{ lora, scale: 0.5 }], architecture).branches.get(module);
    const expected = (diff.data as Float32Array).map((x) => x * 0.5);
    expect(relativeRms(change(branch, shape[0] ?? 0), expected)).toBeLessThan(1e-6);
    expect(branch?.rank).toBe(Math.min(shape[0] ?? 0, diff.data.length / (shape[0] ?? 1)));
  });

  test('a difference and factors of one module add up', async () => {
    const stem = 'diffusion_model.blocks.0.self_attn.v';
    const tensors = {
      [`${stem}.lora_down.weight`]: ramp([2, 64]),
      [`${stem}.lora_up.weight`]: ramp([64, 2], 0.03),
      [`${stem}.diff`]: ramp([64, 64], 0.02),
    };
    const whole = combineLoras([{ lora: await made(tensors), scale: 1 }], architecture);
    const { [`${stem}.diff`]: diff, ...factors } = tensors;
    const part = combineLoras([{ lora: await made(factors), scale: 1 }], architecture);
    const module = 'blocks.0.attn1.to_v';
    const expected = change(part.branches.get(module), 64).map((x, i) => x + (diff?.data[i] ?? 0));
    expect(relativeRms(change(whole.branches.get(module), 64), expected)).toBeLessThan(1e-6);
  });

  test('the bias of PEFT’s second factor is scaled like it', async () => {
    const stem = 'transformer.blocks.0.attn1.to_k';
    const lora = await made(
      {
        [`${stem}.lora_A.weight`]: ramp([2, 64]),
        [`${stem}.lora_B.weight`]: ramp([64, 2]),
        [`${stem}.lora_B.bias`]: ramp([64]),
      },
      { lora_adapter_metadata: '{"transformer.lora_alpha":1}' },
    );
    const values = ramp([64]).data as Float32Array;
    expect(lora.deltas.get('blocks.0.attn1.to_k.bias')).toEqual(values.map((x) => x * 0.5));
  });
});

describe('what does not fit is refused', () => {
  const good = {
    'diffusion_model.blocks.0.self_attn.q.lora_down.weight': ramp([2, 64]),
    'diffusion_model.blocks.0.self_attn.q.lora_up.weight': ramp([64, 2]),
  };

  test.each([
    'diffusion_model.blocks.0.self_attn.q.hada_w1_a',
    'lora_unet_blocks_0_self_attn_q.lokr_w1',
    'diffusion_model.blocks.0.self_attn.q.dora_scale',
    'lora_te1_text_model_encoder_layers_0_mlp_fc1.lora_down.weight',
    'diffusion_model.blocks.0.self_attn.norm_q.diff_b',
    'diffusion_model.blocks.0.self_attn.x.diff_b',
    'lora_unet_blocks_0_self_attn_q',
    'weight',
  ])('%s, by name', async (key) => {
    await expect(made({ ...good, [key]: ramp([64]) })).rejects.toMatchObject({
      code: 'LORA_INVALID',
      message: expect.stringContaining(key),
    });
  });

  const file = (tensors: Record<string, TestTensor>) =>
    new File([safetensorsBytes(tensors)], 'its.safetensors');
  const [goodDown, goodUp] = Object.keys(good) as [string, string];

  test.each([
    [
      'int8 factors',
      { [goodDown]: { dtype: 'I8', shape: [2, 64], data: new Uint8Array(128) } },
      'I8',
    ],
    [
      'packed factors',
      { [goodDown]: { dtype: 'U8', shape: [2, 64], data: new Uint8Array(128) } },
      'U8',
    ],
    [
      'an unknown type',
      { [goodUp]: { dtype: 'F4', shape: [64, 2], data: new Uint8Array(64) } },
      'F4',
    ],
    ['an empty tensor', { [goodUp]: f32([0], []) }, 'is empty: its shape is [0]'],
  ])('by its header: %s', async (_, tensors, reason) => {
    const checkpoint = await checkpointFrom({ ...good, ...tensors });
    // As a LoRA is looked at when it is added: no weight of it is read.
    expect(() => checkLora(checkpoint, architecture, 'made')).toThrow(
      expect.objectContaining({
        code: 'LORA_INVALID',
        message: expect.stringContaining(reason),
      }),
    );
  });

  test('as a damaged file: blocks that are broken', async () => {
    const broken = { dtype: 'Q8_0', shape: [2, 64], data: new Uint8Array(9) };
    await expect(checkpointFrom({ ...good, [goodDown]: broken })).rejects.toMatchObject({
      code: 'MODEL_FILE_INVALID',
      message: expect.stringContaining('Q8_0 [2,64] and needs 136 bytes, but has 9'),
    });
  });

  test.each([
    [
      'a scale that is NaN',
      { [`${goodDown.replace(/weight$/, 'scale_weight')}`]: f32([], [Number.NaN]) },
    ],
    [
      'three scales of two rows',
      { [`${goodDown.replace(/weight$/, 'scale_weight')}`]: f32([3], [1, 1, 1]) },
    ],
    ['factors that are NaN', { [goodUp]: f32([64, 2], Array(128).fill(Number.NaN)) }],
    [
      'alpha that is infinite',
      { 'diffusion_model.blocks.0.self_attn.q.alpha': f32([], [Number.POSITIVE_INFINITY]) },
    ],
  ])('as a fault of the caller’s file, whatever reads it: %s', async (_, tensors) => {
    const request = [{ name: 'its', file: file({ ...good, ...tensors }), scale: 1 }];
    await expect(readLoras(request, architecture)).rejects.toMatchObject({ code: 'LORA_INVALID' });
  });

  test.each([
    ['cut off', (bytes: Uint8Array) => bytes.subarray(0, -9)],
    ['without a header', () => new Uint8Array(5)],
    ['overlapping', () => new TextEncoder().encode('\u0010\0\0\0\0\0\0\0{"a":{"dtype":1}}')],
  ])('a file that is %s is the caller’s fault', async (_, damage) => {
    const bytes = new Uint8Array(damage(safetensorsBytes(good)));
    const request = [{ name: 'its', file: new File([bytes], 'x'), scale: 1 }];
    await expect(readLoras(request, architecture)).rejects.toMatchObject({
      code: 'LORA_INVALID',
      message: expect.stringContaining('The LoRA "its" cannot be read: its '),
    });
  });

  test('half a pair, unequal ranks, the same part twice, no tensors', async () => {
    const [downKey, upKey] = Object.keys(good) as [string, string];
    const bad: Record<string, TestTensor>[] = [
      { [downKey]: ramp([2, 64]) },
      { [upKey]: ramp([64, 2]) },
      { [downKey]: ramp([2, 64]), [upKey]: ramp([64, 3]) },
      { ...good, 'transformer.blocks.0.attn1.to_q.lora_A.weight': ramp([2, 64]) },
      { ...good, 'diffusion_model.blocks.0.self_attn.q.alpha': f32([2], [1, 1]) },
      { ...good, [upKey]: f32([64, 2], Array(128).fill(Number.NaN)) },
      {},
    ];
    for (const tensors of bad) {
      await expect(made(tensors)).rejects.toMatchObject({ code: 'LORA_INVALID' });
    }
  });

  test.each([
    [
      'Wan 1.3B',
      {
        'blocks.0.ffn.0.lora_A.weight': f32([2, 1536]),
        'blocks.0.ffn.0.lora_B.weight': f32([8960, 2]),
      },
      '[8960,1536]',
      '[128,64]',
    ],
    [
      'Wan2.2-TI2V-5B',
      {
        'blocks.0.ffn.2.lora_A.weight': f32([1, 14_336]),
        'blocks.0.ffn.2.lora_B.weight': f32([3072, 1]),
      },
      '[3072,14336]',
      '[64,128]',
    ],
    ['another base model:', { 'blocks.0.ffn.0.diff_b': f32([99]) }, '[99]', '[128]'],
    ['another base model:', { 'blocks.0.diff_m': f32([1, 6, 32]) }, '[1,6,32]', '[1,6,64]'],
    [
      '14B',
      { 'blocks.0.norm3.diff': f32([5120]), 'blocks.0.cross_attn.k_img.diff_b': f32([5120]) },
      '[5120]',
      '[64]',
    ],
  ])('shapes of %s', async (base, tensors, found, expected) => {
    await expect(made(tensors)).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
      message: expect.stringContaining(base),
    });
    await expect(made(tensors)).rejects.toThrow(found);
    await expect(made(tensors)).rejects.toThrow(expected);
  });

  test('image attention and further blocks belong to another base', async () => {
    const image = {
      ...good,
      'diffusion_model.blocks.0.cross_attn.k_img.lora_down.weight': ramp([2, 64]),
    };
    await expect(made(image)).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
      message: expect.stringContaining('k_img'),
    });
    const deep = { ...good, 'lora_unet_blocks_39_ffn_0.lora_down.weight': ramp([2, 64]) };
    await expect(made(deep)).rejects.toMatchObject({
      code: 'LORA_WRONG_BASE',
      message: expect.stringContaining('block 39'),
    });
  });
});
