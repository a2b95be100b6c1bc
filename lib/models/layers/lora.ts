import { at, KinoraError, type LoraFile, sha256 } from '../../contract';
import { toBF16 } from '../../gpu';
import { blobFile, type Checkpoint, type SafetensorsCheckpoint } from '../../weights';
import { loraStrength, ofLora, openLoraFile } from '../../weights/lora-metadata';
import { type LoraKey, type LoraRole, loraKeyReader } from './lora-keys';
import { shapeOfTensor, type TensorShapes } from './tensor-shapes';

/** A low-rank change of one linear weight: ΔW = factor · up · down. */
export interface LoraFactors {
  readonly rank: number;
  /** [rank, in] */
  readonly down: Float32Array;
  /** [out, rank] */
  readonly up: Float32Array;
  /** alpha / rank, or 1 without alpha. */
  readonly factor: number;
  /** Whether both came in 16 bits or fewer. */
  readonly narrow: boolean;
}

/** An adapter that fits the model, by the model's own names. */
export interface Lora {
  readonly name: string;
  /** Module name, such as `blocks.0.attn1.to_q` → its changes, which add up. */
  readonly modules: ReadonlyMap<string, readonly LoraFactors[]>;
  /** Tensor name, such as `blocks.0.attn1.to_q.bias` → what is added to it. */
  readonly deltas: ReadonlyMap<string, Float32Array>;
  /** What its metadata says that could not be read, or that its tensors contradict; as sentences. */
  readonly notes: readonly string[];
}

/** A side branch of one module: `y += up·(down·x)`. */
export interface LoraBranch {
  /** A multiple of 4: further rows are zero. */
  readonly rank: number;
  /** [rank, in], in f32 or as the bits of bf16. */
  readonly down: Float32Array | Uint16Array;
  /** [out, rank], scale and alpha folded in. */
  readonly up: Float32Array | Uint16Array;
}

/** Ranks of a LoRA, and which factors are bf16: memory and graphs depend on them. */
export interface LoraForm {
  /** By module name, such as `blocks.0.attn1.to_q`. */
  readonly branches: ReadonlyMap<string, Pick<LoraBranch, 'rank' | 'up'>>;
}

/** All adapters of a run together. */
export interface LoraBranches extends LoraForm {
  readonly branches: ReadonlyMap<string, LoraBranch>;
  /** By tensor name: to be added to biases, norms and modulation tables. */
  readonly deltas: ReadonlyMap<string, Float32Array>;
}

/** A model, or a part of it, as LoRA files may change it. */
export interface LoraArchitecture {
  /** Every tensor that a LoRA may change. */
  readonly shapes: TensorShapes;
  /** The name that a module has in the original files. */
  readonly originalName: (module: string) => string;
  /** Names the model that a LoRA was made for, by the shape of a tensor that does not fit. */
  readonly baseOf?: (shape: readonly number[]) => string | undefined;
  /** Whether a key is of parts that the model does not have and the file is good without; it is left out. */
  readonly ignores?: (key: string) => boolean;
  /** The rest of a sentence on a LoRA with an unknown key: which base it was made for, where the key tells. */
  readonly baseOfKey?: (key: string) => string | undefined;
}

type LoraHeader = Pick<Checkpoint, 'names' | 'shape' | 'dtype'>;

/** Element types of factors and deltas, in files and in the store; alpha may have any type of number. */
const factorTypes = /^(F64|F32|F16|BF16|F8_E4M3|F8_E5M2|int8|int4)$/;

/** What a LoRA file has for each module or table, by role: keys of the file. */
type LoraParts = ReadonlyMap<string, Partial<Record<LoraRole, string>>>;

/**
 * Reads a LoRA in any of the usual layouts: PEFT and diffusers, ComfyUI, kohya and musubi (with alpha),
 * DiffSynth, lightx2v (with `diff`, `diff_b`, `diff_m`). It may touch only some modules.
 *
 * @param checkpoint the file; its `metadata`, where it has any, may hold PEFT's alpha
 * @param architecture what it shall change
 * @param name for messages
 * @throws KinoraError `LORA_WRONG_BASE` when its shapes are another model's, `LORA_INVALID` naming the
 * key when a part of it cannot be applied: nothing is ignored silently
 */
export async function parseLora(
  checkpoint: Checkpoint & { readonly metadata?: ReadonlyMap<string, string> },
  architecture: LoraArchitecture,
  name: string,
): Promise<Lora> {
  const parts = checkLora(checkpoint, architecture, name);
  return readParts(checkpoint, architecture, parts, name);
}

/**
 * Checks by the header of a LoRA that every part of it can be applied.
 *
 * @throws KinoraError as {@link parseLora} does
 */
export function checkLora(
  checkpoint: LoraHeader,
  architecture: LoraArchitecture,
  name: string,
): LoraParts {
  const { shapes } = architecture;
  const readKey = loraKeyReader(architecture);
  const parts = new Map<string, Partial<Record<LoraRole, string>>>();
  const unknown: string[] = [];
  for (const key of checkpoint.names()) {
    const understood = readKey(key);
    if (!understood || !hasTarget(shapes, understood)) {
      if (!architecture.ignores?.(key)) unknown.push(key);
      continue;
    }
    const { target, role } = understood;
    const [shape, dtype] = [checkpoint.shape(key), checkpoint.dtype(key)];
    if (shape.includes(0)) throw invalid(name, `${key} is empty: its shape is [${shape}]`);
    if (role !== 'alpha' && !factorTypes.test(dtype)) {
      throw invalid(name, `${key} has the element type ${dtype}; f32, f16, bf16 and fp8 are read`);
    }
    const module = parts.get(target) ?? {};
    if (module[role] !== undefined) throw invalid(name, `${key} and ${module[role]} are the same`);
    parts.set(target, { ...module, [role]: key });
  }
  // Shapes first: for a LoRA of another base they say more than its first unknown key.
  for (const [target, keys] of parts) checkShapes(name, checkpoint, architecture, target, keys);
  const [firstUnknown] = unknown;
  if (firstUnknown !== undefined) throw unknownKey(name, firstUnknown, architecture);
  if (parts.size === 0) throw invalid(name, 'it has no tensors');
  return parts;
}

/**
 * Checks a LoRA by its header alone.
 *
 * @returns the largest rank of its factors
 * @throws KinoraError as {@link checkLora} does
 */
export function largestRank(
  checkpoint: LoraHeader,
  architecture: LoraArchitecture,
  name: string,
): number {
  const parts = checkLora(checkpoint, architecture, name);
  const ranks = [...parts.values()].flatMap(({ down }) =>
    down === undefined ? [] : [at(checkpoint.shape(down), 0)],
  );
  return Math.max(0, ...ranks);
}

async function readParts(
  checkpoint: Checkpoint & { readonly metadata?: ReadonlyMap<string, string> },
  { shapes, originalName }: LoraArchitecture,
  parts: LoraParts,
  name: string,
): Promise<Lora> {
  const strength = loraStrength(checkpoint.metadata);
  const notes = new Set(strength.notes);
  const modules = new Map<string, LoraFactors[]>();
  const deltas = new Map<string, Float32Array>();
  const add = (tensor: string, values: Float32Array) => addScaled(deltas, tensor, values, 1);
  for (const [target, keys] of parts) {
    const read = (key: string) => checkpoint.read(key);
    const narrow = (key: string) => /^B?F(16|8)/.test(checkpoint.dtype(key));
    if (keys.tableDelta) add(target, await read(keys.tableDelta));
    if (keys.biasDelta) add(`${target}.bias`, await read(keys.biasDelta));
    const factors: LoraFactors[] = [];
    if (keys.down && keys.up) {
      const rank = at(checkpoint.shape(keys.down), 0);
      const told = strength.alphaOf([target, originalName(target)]);
      if ((strength.rank ?? rank) !== rank) notes.add('the rank in its metadata is another one');
      let factor = told === undefined ? 1 : told / (strength.byRoot ? Math.sqrt(rank) : rank);
      if (keys.alpha) {
        const alpha = at(await read(keys.alpha), 0);
        factor = alpha / rank;
        if (Math.abs((told ?? alpha) - alpha) > Math.abs(alpha) / 100) {
          notes.add('the alpha in its metadata is another one than that of its tensors');
        }
      }
      const [down, up] = [await read(keys.down), await read(keys.up)];
      factors.push({ rank, down, up, factor, narrow: narrow(keys.down) && narrow(keys.up) });
      if (keys.upBias) {
        add(
          `${target}.bias`,
          (await read(keys.upBias)).map((value) => value * factor),
        );
      }
    }
    if (keys.diff) {
      const weight = shapeOfTensor(shapes, `${target}.weight`);
      if (weight.length === 1) add(`${target}.weight`, await read(keys.diff));
      else factors.push(fullRank(await read(keys.diff), weight, narrow(keys.diff)));
    }
    if (factors.length > 0) modules.set(target, factors);
  }
  for (const [target, factors] of modules) {
    const finite = factors.every(
      ({ down, up, factor }) => Number.isFinite(factor) && allFinite(down) && allFinite(up),
    );
    if (!finite) throw invalid(name, `${target} has values that are NaN or infinite`);
  }
  for (const [tensor, values] of deltas) {
    if (!allFinite(values)) throw invalid(name, `${tensor} has values that are NaN or infinite`);
  }
  return { name, modules, deltas, notes: [...notes].map((note) => `The LoRA "${name}": ${note}.`) };
}

function allFinite(values: Float32Array): boolean {
  return values.every(Number.isFinite);
}

/** A LoRA of a request, read for a model. */
export interface ReadLora {
  readonly lora: Lora;
  readonly scale: number;
  readonly checkpoint: SafetensorsCheckpoint;
}

/** LoRAs of a request, read for a model. */
export interface ReadLoras {
  readonly loras: readonly ReadLora[];
  /** What tells each of them, with its scale, from others. */
  readonly ids: readonly string[];
}

/**
 * Reads the LoRAs of a request.
 *
 * @throws KinoraError as {@link parseLora} does, and `LORA_INVALID` for whatever else is wrong with one
 */
export async function readLoras(
  files: readonly LoraFile[],
  architecture: LoraArchitecture,
): Promise<ReadLoras> {
  const loras: ReadLora[] = [];
  const ids: string[] = [];
  for (const { name, file, scale } of files) {
    const checkpoint = await openLoraFile(blobFile(name, file));
    const lora = await ofLora(name, parseLora(checkpoint, architecture, name));
    loras.push({ lora, scale, checkpoint });
    // Its header and first weights are in the first MiB: no other LoRA shares them.
    const start = await file.slice(0, 2 ** 20).arrayBuffer();
    ids.push(JSON.stringify([await sha256(start), file.size, scale]));
  }
  return { loras, ids };
}

/**
 * Joins adapters for one run: factors are concatenated along the rank, deltas are summed, each with its
 * scale. An adapter with scale 0 leaves no trace.
 */
export function combineLoras(
  loras: readonly { readonly lora: Lora; readonly scale: number }[],
  { shapes }: Pick<LoraArchitecture, 'shapes'>,
): LoraBranches {
  const scaled = new Map<string, { factors: LoraFactors; scale: number }[]>();
  const deltas = new Map<string, Float32Array>();
  for (const { lora, scale } of loras) {
    if (scale === 0) continue;
    for (const [module, all] of lora.modules) {
      const list = scaled.get(module) ?? [];
      list.push(...all.map((factors) => ({ factors, scale: scale * factors.factor })));
      scaled.set(module, list);
    }
    for (const [tensor, values] of lora.deltas) addScaled(deltas, tensor, values, scale);
  }
  const branches = new Map<string, LoraBranch>();
  for (const [module, list] of scaled) {
    const [out = 0, ...inner] = shapeOfTensor(shapes, `${module}.weight`);
    branches.set(module, concatenate(list, out, product(inner)));
  }
  return { branches, deltas };
}

/** The rank of a branch whose factors have this rank together: kernels read four numbers at a time. */
export function branchRank(rank: number): number {
  return 4 * Math.ceil(rank / 4);
}

function concatenate(
  list: readonly { readonly factors: LoraFactors; readonly scale: number }[],
  out: number,
  inner: number,
): LoraBranch {
  const ranks = (of: typeof list) => of.reduce((sum, { factors }) => sum + factors.rank, 0);
  const rank = branchRank(ranks(list));
  const down = new Float32Array(rank * inner);
  const up = new Float32Array(out * rank);
  let first = 0; // rank rows filled so far
  for (const { factors, scale } of list) {
    down.set(factors.down, first * inner);
    for (let row = 0; row < out; row++) {
      for (let r = 0; r < factors.rank; r++) {
        up[row * rank + first + r] = (factors.up[row * factors.rank + r] as number) * scale;
      }
    }
    first += factors.rank;
  }
  // As most of the rank came: a small adapter in f32 does not double the memory of a large one. bf16 has the range
  // of f32, so that no scale makes a number zero.
  const isNarrow = 2 * ranks(list.filter(({ factors }) => factors.narrow)) > ranks(list);
  return isNarrow ? { rank, down: toBF16(down), up: toBF16(up) } : { rank, down, up };
}

/** A whole weight difference as factors: itself and an identity on its smaller side. */
function fullRank(diff: Float32Array, weight: readonly number[], narrow: boolean): LoraFactors {
  const [out = 0, ...inner] = weight;
  const input = product(inner);
  const rank = Math.min(out, input);
  const identity = new Float32Array(rank * rank);
  for (let i = 0; i < rank; i++) identity[i * rank + i] = 1;
  const [down, up] = out <= input ? [diff, identity] : [identity, diff];
  return { rank, down, up, factor: 1, narrow };
}

function addScaled(
  deltas: Map<string, Float32Array>,
  tensor: string,
  values: Float32Array,
  scale: number,
): void {
  const sum = deltas.get(tensor) ?? new Float32Array(values.length);
  for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] as number) + (values[i] as number) * scale;
  deltas.set(tensor, sum);
}

/** Whether the model has the tensor that such a key changes: norms have no bias, for instance. */
function hasTarget(shapes: TensorShapes, { target, role }: LoraKey): boolean {
  if (role === 'tableDelta') return shapes.has(target);
  if (role === 'biasDelta' || role === 'upBias') return shapes.has(`${target}.bias`);
  const weight = shapes.get(`${target}.weight`);
  return weight !== undefined && (role === 'diff' || role === 'alpha' || weight.length > 1);
}

function checkShapes(
  name: string,
  checkpoint: Pick<Checkpoint, 'shape'>,
  architecture: LoraArchitecture,
  target: string,
  keys: Partial<Record<LoraRole, string>>,
): void {
  const { shapes } = architecture;
  const { down, up } = keys;
  const single = down ?? up ?? keys.upBias;
  if (single !== undefined && !(down && up)) throw invalid(name, `${single} lacks its other half`);
  if (down && up) {
    // A convolution's factors have further dimensions: [r, in, 1, 2, 2] and [out, r, 1, 1, 1].
    const [rank = 0, ...inner] = checkpoint.shape(down);
    const [out = 0, ...upRank] = checkpoint.shape(up);
    if (rank === 0 || product(upRank) !== rank || inner.length === 0) {
      throw invalid(name, `the ranks of ${down} and ${up} differ`);
    }
    const weight = shapeOfTensor(shapes, `${target}.weight`);
    const [modelOut = 0, ...modelInner] = weight;
    if (out !== modelOut || product(inner) !== product(modelInner)) {
      throw wrongBase(name, architecture, target, [out, ...inner], weight);
    }
  }
  if (keys.alpha && product(checkpoint.shape(keys.alpha)) !== 1) {
    throw invalid(name, `${keys.alpha} is not a single number`);
  }
  const tensors = [
    [keys.diff, `${target}.weight`],
    [keys.biasDelta, `${target}.bias`],
    [keys.upBias, `${target}.bias`],
    [keys.tableDelta, target],
  ] as const;
  for (const [key, tensor] of tensors) {
    if (key === undefined) continue;
    const shape = checkpoint.shape(key);
    const expected = shapeOfTensor(shapes, tensor);
    const squeezed = shape.filter((n) => n !== 1).join();
    if (squeezed !== expected.filter((n) => n !== 1).join()) {
      throw wrongBase(name, architecture, tensor, shape, expected);
    }
  }
}

function unknownKey(name: string, key: string, { baseOfKey }: LoraArchitecture): KinoraError {
  const base = baseOfKey?.(key);
  if (base === undefined) return invalid(name, `${key} is of a kind that cannot be applied`);
  return new KinoraError('LORA_WRONG_BASE', `The LoRA "${name}" was made for ${base}.`);
}

function wrongBase(
  name: string,
  { baseOf }: LoraArchitecture,
  target: string,
  shape: readonly number[],
  expected: readonly number[],
): KinoraError {
  const base = baseOf?.(shape);
  const otherBase = base === undefined ? 'another base model' : `another base model (${base})`;
  return new KinoraError(
    'LORA_WRONG_BASE',
    `The LoRA "${name}" was made for ${otherBase}: for ${target} it has the shape [${shape}], this model has [${expected}].`,
  );
}

function invalid(name: string, reason: string): KinoraError {
  return new KinoraError('LORA_INVALID', `The LoRA "${name}" cannot be read: ${reason}.`);
}

function product(shape: readonly number[]): number {
  return shape.reduce((all, n) => all * n, 1);
}
