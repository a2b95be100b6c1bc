import { at } from '../../contract';
import { type Code, call, type FunctionSource, f32, i32, op } from '../../wasm/assembler';
import type { SimdHeap } from './heap';
import { type Four, fill, groupSize, product } from './kernels';
import { columns, filters, softmax } from './row-kernels';
import type { KernelSource, SimdThreads } from './threads';

/** Logit of what is no key. */
const noKey = -1e30;

/** Rows in the heap: the address of the first one, and bytes from one to the next. */
export interface Rows {
  readonly first: number;
  readonly count: number;
  readonly step: number;
}

/** `softmax(scale·q·kᵀ + side)·v` of heads that lie side by side in rows. */
interface Attention {
  readonly queries: Rows;
  /** Behind them, and behind the values, are zeros up to a whole group of rows. */
  readonly keys: Rows;
  readonly values: Rows;
  /** Where the result goes; its rows are as far apart as those of the queries. */
  readonly output: number;
  readonly heads: number;
  /** A multiple of the size of a group. */
  readonly headSize: number;
  readonly scale: number;
  /** What is added to the logit of the last key. */
  readonly last?: number;
  /** What is added to logits: a row for each head and query. */
  readonly side?: Pick<Rows, 'first' | 'step'> | undefined;
}

/** Computes an attention. Keys and values of a head become filters, and products of them convolutions of single rows. */
export function attend(
  heap: SimdHeap,
  threads: SimdThreads,
  { queries, keys, values, output, heads, headSize, scale, last = 0, side }: Attention,
): void {
  const { step, count } = queries;
  const padded = fill(keys.count);
  const ofAll = 4 * padded * heads * headSize;
  const blocks = [ofAll, ofAll, 4 * threads.count * queryTile * padded].map((bytes) =>
    heap.allocate(bytes),
  );
  const [packedKeys, packedValues, logits] = blocks.map((block) => block.at) as Three;
  const numbers = new Float32Array(padded + headSize + 2 * groupSize);
  numbers.fill(noKey, keys.count, padded);
  numbers[keys.count - 1] = last / scale;
  numbers.fill(scale, padded + headSize, padded + headSize + groupSize).fill(1, -groupSize);
  const constants = heap.put(numbers, 'activations');
  const [zeros, scales] = [padded, padded + headSize].map((index) => constants.at + 4 * index);
  const group = 4 * groupSize;
  const ofKeys = {
    x: [keys.first, 4 * headSize],
    step: keys.step,
    y: [packedKeys, 4 * padded * headSize],
    fours: headSize / 4,
    groups: padded / groupSize,
  } as const;
  threads.run('filters', filters, ofKeys, heads);
  const ofValues = {
    x: [values.first, group],
    step: values.step,
    y: [packedValues, padded * group],
    rows: padded,
  } as const;
  threads.run('columns', columns, ofValues, (heads * headSize) / groupSize);
  const tiles = Math.ceil(count / queryTile);
  const job = {
    queries: queries.first,
    keys: packedKeys,
    values: packedValues,
    output,
    count,
    tiles,
    bias: constants.at,
    scales: scales as number,
    side: side?.first ?? (zeros as number),
    sideStep: side?.step ?? 0,
    sideGroup: side ? group : 0,
    zeros: zeros as number,
    ones: (scales as number) + group,
    logits,
  };
  const source = () => kernel({ step, headSize, keys: padded });
  threads.run(`attention ${step} ${headSize} ${padded}`, source, job, heads * tiles);
  for (const block of [...blocks, constants]) heap.release(block);
}
type Three = [number, number, number];

/** Queries that a thread computes together: their logits stay in the cache. */
const queryTile = 48;

/** Sizes that an attention is made for. */
interface AttentionShape {
  /** Bytes from a row of queries to the next, as of the results. */
  readonly step: number;
  readonly headSize: number;
  /** Keys, filled up to whole groups. */
  readonly keys: number;
}

const attentionNames = [
  'queries',
  /** Of each head, as filters. */
  'keys',
  'values',
  'output',
  /** Rows of queries, and tiles of them. */
  'count',
  'tiles',
  /** What is added to logits before they are scaled: a number for each key; and the scale. */
  'bias',
  'scales',
  /** What is added then: rows of each head, or none where both steps are 0. */
  'side',
  'sideStep',
  'sideGroup',
  /** Zeros for the columns of a head, ones for a group, and a tile of logits for each thread. */
  'zeros',
  'ones',
  'logits',
  'index',
  'thread',
] as const;
type AttentionName = (typeof attentionNames)[number];

/** `softmax(scale·(q·kᵀ + bias) + side)·v` of a tile of queries and a head. */
function kernel({ step, headSize, keys }: AttentionShape): KernelSource<AttentionName> {
  const logitStep = 4 * keys;
  const first = product(step).functions;
  const second = product(logitStep, first.length).functions;
  const exponentials = first.length + second.length;
  const source: FunctionSource = {
    name: 'attention',
    parameters: attentionNames.map(() => 'i32'),
    body: (parameters, local) => {
      const get = (name: AttentionName) => at(parameters, attentionNames.indexOf(name)).get;
      const times = (a: Code, by: number | Code) =>
        op('i32.mul', a, typeof by === 'number' ? i32(by) : by);
      const sum = (...of: [Code, ...Code[]]) => of.reduce((a, b) => op('i32.add', a, b));
      const [head, row, rows, logits] = [0, 1, 2, 3].map(() => local('i32')) as Four;
      const place = local('i32');
      const left = op('i32.sub', get('count'), row.get);
      const [none, all] = [f32(Number.NEGATIVE_INFINITY), f32(Number.POSITIVE_INFINITY)];
      const ofHead = times(head.get, 4 * keys * headSize);
      const sideRow = sum(times(head.get, get('count')), row.get);
      return [
        head.set(op('i32.div_u', get('index'), get('tiles'))),
        row.set(times(op('i32.sub', get('index'), times(head.get, get('tiles'))), queryTile)),
        rows.set(op('select', i32(queryTile), left, op('i32.lt_u', i32(queryTile), left))),
        logits.set(sum(get('logits'), times(get('thread'), queryTile * logitStep))),
        place.set(sum(times(row.get, step), times(head.get, 4 * headSize))),
        call(
          first.length - 1,
          ...[get('zeros'), i32(1), i32(headSize / 4), sum(get('queries'), place.get)],
          ...[sum(get('keys'), ofHead), i32(4 * groupSize * headSize), i32(keys / groupSize)],
          ...[get('bias'), logits.get, i32(logitStep)],
          ...[sum(get('side'), times(sideRow, get('sideStep'))), get('sideStep')],
          ...[get('sideGroup'), rows.get, none, all, get('scales'), i32(0)],
        ),
        call(exponentials, logits.get, rows.get, i32(keys / 4)),
        call(
          exponentials - 1,
          ...[get('zeros'), i32(1), i32(keys / 4), logits.get],
          ...[sum(get('values'), ofHead), i32(4 * groupSize * keys), i32(headSize / groupSize)],
          ...[get('zeros'), sum(get('output'), place.get), i32(step)],
          ...[get('zeros'), i32(0), i32(0), rows.get, none, all, get('ones'), i32(0)],
        ),
      ];
    },
  };
  return { functions: [...first, ...second, softmax(), source], names: attentionNames };
}
