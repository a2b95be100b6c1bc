import { at, centred, type PixelSize, placeImage } from '../contract';
import {
  access,
  type Code,
  doWhile,
  type FunctionSource,
  i32,
  instantiate,
  op,
  shuffle,
  splat,
} from '../wasm/assembler';
import { type Axis, axisSpan, catmullRom, type Kernel, makeAxis } from './resample';
import { i420Bytes, matrix } from './yuv';

interface Program {
  /** Resamples a source row of each channel in width, into a slot of the ring. */
  columns(slot: number): void;
  /** Makes two output rows, `row` and the next, from the slots that their first source rows have. */
  rows(first: number, second: number, row: number): void;
}

/**
 * Converts the model's frames to what an encoder takes: planar RGB [3, height, width] in [−1, 1] → I420 of exactly the
 * target size, by vectors (WebAssembly). The pixels are those of {@link FrameScaler} but for rounding: its sums are in
 * double precision, these in single.
 */
export class I420Scaler {
  readonly #from: number;
  readonly #rows: Axis;
  readonly #slots: number;
  readonly #inputs: readonly Float32Array[];
  readonly #output: Uint8Array<ArrayBuffer>;
  readonly #program: Program;

  /**
   * @param target even sizes, at least 4 wide
   * @param kernel Catmull-Rom for nearly the same size, Lanczos-3 to enlarge
   * @throws TypeError for other sizes
   */
  constructor(
    readonly source: PixelSize,
    target: PixelSize,
    kernel: Kernel = catmullRom,
  ) {
    const { width, height } = target;
    const { x, y } = placeImage(source, centred, target);
    if (width % 2 !== 0 || height % 2 !== 0 || width < 4) {
      throw new TypeError(`I420 of ${width}×${height}: sizes are even, and 4 at least in width.`);
    }
    const [columns, rows] = [makeAxis(x, kernel), makeAxis(y, kernel)];
    const { from, to } = axisSpan(columns);
    this.#from = from;
    this.#rows = rows;
    const layout = layoutOf(target, columns, rows, to - from);
    const bytes = layout.output + i420Bytes(width, height);
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / 65_536) });
    const floats = new Float32Array(memory.buffer);
    const starts = columns.starts.map((start) => 4 * (start - from));
    new Int32Array(memory.buffer).set(starts, layout.starts / 4);
    for (const [i, weight] of columns.weights.entries()) {
      const column = Math.floor(i / columns.taps);
      floats[layout.weights / 4 + 4 * layout.groups * column + (i % columns.taps)] = weight;
    }
    floats.set(rows.weights, layout.rowWeights / 4);
    this.#slots = layout.slots;
    this.#inputs = [0, 1, 2].map((channel) => {
      const start = (layout.input + channel * layout.inputRow) / 4;
      return floats.subarray(start, start + to - from);
    });
    this.#output = new Uint8Array(memory.buffer, layout.output, i420Bytes(width, height));
    this.#program = instantiate([columnsOf(layout), rowsOf(layout)], memory);
  }

  /**
   * @param frame planar RGB [3, height, width] in [−1, 1]
   * @returns planes of the target size, valid until the next call
   * @throws TypeError for a frame of another length
   */
  scale(frame: Float32Array): Uint8Array<ArrayBuffer> {
    const { width, height } = this.source;
    if (frame.length !== 3 * width * height) {
      throw new TypeError(`The frame has ${frame.length} values, not ${3 * width * height}.`);
    }
    const { starts, taps } = this.#rows;
    let row = at(starts, 0);
    for (let i = 0; i < starts.length; i += 2) {
      const [first, second] = [at(starts, i), at(starts, i + 1)];
      for (; row < second + taps; row++) {
        for (const [channel, input] of this.#inputs.entries()) {
          const start = (channel * height + row) * width + this.#from;
          input.set(frame.subarray(start, start + input.length));
        }
        this.#program.columns(row % this.#slots);
      }
      this.#program.rows(first % this.#slots, second % this.#slots, i);
    }
    return this.#output;
  }
}

/** Places in memory in bytes, and counts. */
function layoutOf({ width, height }: PixelSize, x: Axis, y: Axis, span: number) {
  /** Fours of weights of a column, and columns in whole vectors. */
  const [groups, columns] = [Math.ceil(x.taps / 4), 4 * Math.ceil(width / 4)];
  const gaps = y.starts.map((start, i) => (i % 2 === 1 ? start - at(y.starts, i - 1) : 0));
  const slots = Math.max(...gaps) + y.taps;
  let end = 0;
  const take = (values: number) => {
    end += 16 * Math.ceil(values / 4);
    return end - 16 * Math.ceil(values / 4);
  };
  // Weights of zero lie over what is behind a source row.
  const inputRow = 16 * (Math.ceil(span / 4) + groups);
  return {
    width,
    height,
    groups,
    columns,
    slots,
    taps: y.taps,
    inputRow,
    input: take((3 * inputRow) / 4),
    starts: take(columns),
    weights: take(4 * groups * columns),
    rowWeights: take(y.taps * height),
    // Each slot is there twice, so that the rows of an output row follow one another.
    channel: 8 * slots * columns,
    ring: take(6 * slots * columns),
    output: end,
  };
}
type Layout = ReturnType<typeof layoutOf>;

const channels = [0, 1, 2] as const;
const four = [0, 1, 2, 3];
const add = (a: Code, b: Code) => op('i32.add', a, b);
const sum = (terms: readonly Code[]) => terms.reduce((a, b) => op('f32x4.add', a, b));

/** Four columns at a time: the products of each lie in a vector; these are transposed as they are added. */
function columnsOf({ groups, columns, slots, ...layout }: Layout): FunctionSource {
  return {
    name: 'columns',
    parameters: ['i32'],
    body: (parameters, local) => {
      const slot = at(parameters, 0);
      const [to, starts, weights] = [local('i32'), local('i32'), local('i32')];
      const offsets = four.map(() => local('i32'));
      const products = four.map(() => local('v128'));
      const pairs = (k: number) => {
        const [a, b] = [at(products, k).get, at(products, k + 1).get];
        return op('f32x4.add', shuffle(a, b, [0, 1, 4, 5]), shuffle(a, b, [2, 3, 6, 7]));
      };
      const channel = (c: number) => {
        const [a, b] = [at(products, 0), at(products, 2)];
        const even = shuffle(a.get, b.get, [0, 2, 4, 6]);
        const sums = op('f32x4.add', even, shuffle(a.get, b.get, [1, 3, 5, 7]));
        return [
          ...products.map((each, k) => {
            const terms = Array.from({ length: groups }, (_, g) => {
              const weight = access('v128.load', [weights.get], 16 * (k * groups + g));
              const place = layout.input + c * layout.inputRow + 16 * g;
              return op('f32x4.mul', weight, access('v128.load', [at(offsets, k).get], place));
            });
            return each.set(sum(terms));
          }),
          a.set(pairs(0)),
          b.set(pairs(2)),
          access('v128.store', [to.get, a.tee(sums)], c * layout.channel),
          access('v128.store', [to.get, a.get], c * layout.channel + 4 * slots * columns),
        ];
      };
      return [
        to.set(add(op('i32.mul', slot.get, i32(4 * columns)), i32(layout.ring))),
        starts.set(i32(layout.starts)),
        weights.set(i32(layout.weights)),
        doWhile(
          [
            ...offsets.map((each, k) => each.set(access('i32.load', [starts.get], 4 * k))),
            ...channels.flatMap(channel),
            ...[to.increase(16), starts.increase(16), weights.increase(64 * groups)],
          ],
          op('i32.lt_u', starts.get, i32(layout.starts + 4 * columns)),
        ),
      ];
    },
  };
}

/** Two rows of four pixels at a time; the last four of a row may overlap those before. */
function rowsOf({ width, height, columns, taps, ...layout }: Layout): FunctionSource {
  return {
    name: 'rows',
    parameters: ['i32', 'i32', 'i32'],
    body: (parameters, local) => {
      const [row, pixel, before] = [at(parameters, 2), local('i32'), local('i32')];
      const lines = [0, 1].map((line) => ({
        slot: at(parameters, line),
        weights: Array.from({ length: taps }, () => local('v128')),
        rgb: channels.map(() => local('v128')),
      }));
      const value = local('v128');
      const byte = ({ slot, weights }: (typeof lines)[0], c: number) => {
        const address = add(slot.get, op('i32.shl', pixel.get, i32(2)));
        const terms = weights.map(({ get }, tap) => {
          const place = layout.ring + c * layout.channel + 4 * tap * columns;
          return op('f32x4.mul', get, access('v128.load', [address], place));
        });
        const half = splat('f32', 127.5);
        const scaled = op('f32x4.add', op('f32x4.mul', sum(terms), half), half);
        const cut = op('f32x4.min', op('f32x4.max', scaled, splat('f32', 0)), splat('f32', 255));
        return op('i32x4.trunc_sat_f32x4_s', op('f32x4.nearest', cut));
      };
      const mixed = ({ rgb }: (typeof lines)[0], mix: readonly number[], bias: number) =>
        rgb
          .map(({ get }, c) => op('i32x4.mul', get, splat('i32', at(mix, c))))
          .reduce((a, b) => op('i32x4.add', a, b), splat('i32', bias));
      const narrow = (vector: Code) => {
        const words = op('i16x8.narrow_i32x4_s', value.tee(vector), value.get);
        return op('i8x16.narrow_i16x8_u', value.tee(words), value.get);
      };
      const [top, bottom] = [at(lines, 0), at(lines, 1)];
      const luma = (line: number) => {
        const bytes = op('i32x4.shr_u', mixed(at(lines, line), matrix.y, matrix.yBias), i32(16));
        const place = add(op('i32.mul', row.get, i32(width)), pixel.get);
        const start = layout.output + line * width;
        return access('v128.store32_lane', [place, narrow(bytes)], start, 0);
      };
      const chroma = (plane: number) => {
        const mix = mixed(top, plane === 0 ? matrix.u : matrix.v, matrix.cBias);
        const sums = value.tee(op('i32x4.shr_u', mix, i32(18)));
        const bytes = narrow(shuffle(sums, value.get, [0, 2, 0, 2]));
        const place = add(op('i32.mul', row.get, i32(width / 2)), pixel.get);
        const start = layout.output + width * height * (1 + plane / 4);
        return access('v128.store16_lane', [op('i32.shr_u', place, i32(1)), bytes], start, 0);
      };
      const [next, last] = [add(pixel.get, i32(4)), i32(width - 4)];
      return [
        ...lines.flatMap(({ slot, weights }, line) => [
          slot.set(op('i32.mul', slot.get, i32(4 * columns))),
          ...weights.map((each, tap) => {
            const place = op('i32.mul', row.get, i32(4 * taps));
            const start = layout.rowWeights + 4 * (line * taps + tap);
            return each.set(access('v128.load32_splat', [place], start));
          }),
        ]),
        doWhile(
          [
            ...lines.flatMap((each, line) => [
              ...each.rgb.map((to, c) => to.set(byte(each, c))),
              luma(line),
            ]),
            // The first of two pixels beside one another gets the sum of both and of those below.
            ...top.rgb.flatMap((to, c) => {
              const below = to.set(op('i32x4.add', to.get, at(bottom.rgb, c).get));
              const beside = shuffle(to.get, to.get, [1, 0, 3, 2]);
              return [below, to.set(op('i32x4.add', to.get, beside))];
            }),
            ...[chroma(0), chroma(1), before.set(pixel.get)],
            pixel.set(op('select', next, last, op('i32.lt_u', next, last))),
          ],
          op('i32.lt_u', before.get, last),
        ),
      ];
    },
  };
}
