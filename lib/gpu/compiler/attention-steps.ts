import { columns, hasTokenRows, type Value } from '../../graph';
import {
  type AttentionRun,
  type AttentionShape,
  type AttentionVariant,
  attentionDispatch,
  fastAttentionDispatch,
  hasAttention,
  hasMatrixAttention,
  matrixAttentionDispatch,
  packedValues,
  packedWidth,
  quantiseRows,
  quantiseValues,
} from '../kernels';
import type { Slot } from './arena';
import { operandOf } from './patterns';
import {
  type HeadRange,
  headRanges,
  headView,
  type Listing,
  type Place,
  rowsOf,
  slotOperand,
  slotsOf,
} from './places';
import type { GraphScope } from './scope';

interface Placed {
  readonly value: Value;
  readonly place: Place;
}

/** Rows of heads in 8 bits, with a scale for each. */
interface RoundedHeads {
  readonly values: Slot;
  readonly scales: Slot;
}

/** Values in 8 bits, with a range for each channel of a head. */
interface RoundedValues {
  readonly values: Slot;
  readonly ranges: Slot;
}

/** An attention, in ranges of heads where one binding does not see all keys. */
class AttentionSteps {
  readonly q: Placed;
  readonly k: Placed;
  readonly v: Placed;
  readonly headSize: number;
  readonly ranges: readonly HeadRange[];
  readonly scale: number;
  readonly lastBias: string | null;
  /** A matrix [heads, R, R′] that is added to the logits. */
  readonly bias: Slot | null;

  constructor(
    readonly scope: GraphScope,
    readonly value: Value,
  ) {
    if (value.call.op !== 'attention') throw new TypeError(`${value.call.op} is no attention`);
    const { heads, scale, lastBias } = value.call;
    const placed = (index: number) => {
      const operand = operandOf(value, index);
      return { value: operand, place: scope.at(operand) };
    };
    [this.q, this.k, this.v] = [placed(0), placed(1), placed(2)];
    for (const { value: whole, place } of [this.k, this.v]) {
      if (hasTokenRows(whole) && place.kind !== 'heads') {
        scope.refuse(value, 'reads all rows of what no linear layer gives');
      }
    }
    this.headSize = columns(value) / heads;
    if (!hasAttention(this.headSize)) scope.refuse(value, `has heads of ${this.headSize}`);
    this.scale = scale;
    this.lastBias = lastBias;
    this.bias = this.#biasSlot();
    const { place } = this.k;
    this.ranges =
      place.kind === 'heads'
        ? headRanges(place.layout, place.storage, scope.options.limits)
        : [{ first: 0, count: heads }];
  }

  /** Whether the clip's tokens attend to each other. */
  get isOfClip(): boolean {
    return this.k.place.kind === 'heads' && this.lastBias === null;
  }

  #biasSlot(): Slot | null {
    const { scope, value } = this;
    const [, , , bias] = value.operands;
    if (!bias) return null;
    const [slot] = slotsOf(scope.at(bias));
    if (!slot || hasTokenRows(value)) {
      return scope.refuse(value, 'has a bias that no kernel computes');
    }
    return slot;
  }

  /** In f16 on matrix units where they compute it. */
  exact(): void {
    const { scope, value, lastBias, bias } = this;
    const { attention, matrixAttention } = scope.kernels;
    // What is summed is summed in f32.
    const isSummed = scope.graph.values.some(
      ({ call, operands }) => call.op === 'add' && operands.includes(value),
    );
    const y = isSummed ? scope.make(value, 'f32') : scope.make(value);
    const placed = [this.q, this.k, this.v].flatMap(({ place }) => slotsOf(place));
    const reads = bias ? [...placed, bias] : placed;
    const shape = this.#shape(y);
    const matrices =
      this.isOfClip && matrixAttention && hasMatrixAttention(matrixAttention, shape)
        ? matrixAttention
        : null;
    const dispatch = (run: AttentionRun) =>
      matrices
        ? matrixAttentionDispatch(matrices, shape, run)
        : attentionDispatch(attention, shape, run);
    scope.step(value, reads, slotsOf(y), (listing) =>
      this.ranges.map((range) =>
        dispatch({
          ...this.#run(y, range, listing),
          q: this.#heads(this.q, range, listing),
          k: this.#heads(this.k, range, listing),
          v: this.#heads(this.v, range, listing),
          ...(lastBias !== null && { lastBias: listing.bindings.number(lastBias) }),
          ...(bias && { bias: this.#biasOf(bias, listing) }),
        }),
      ),
    );
  }

  /** Queries, keys and values in 8 bits, the keys less their mean over the clip. */
  fast(variant: AttentionVariant): void {
    const { scope, value, q } = this;
    const keys = this.#roundKeys();
    const values = this.#roundValues();
    const most = Math.max(...this.ranges.map(({ count }) => count));
    const queries = this.#take(scope.chunkRows * most);
    const y = scope.make(value);
    const rounded = [queries.values, queries.scales];
    scope.lifetimes.step(slotsOf(q.place), rounded);
    const reads = [
      ...rounded,
      ...values.flatMap(({ values, ranges }) => [values, ranges]),
      ...keys.flatMap(({ values, scales }) => [values, scales]),
      // Each range's queries take the place of those before, so that the rows are read again.
      ...(keys.length > 1 ? slotsOf(q.place) : []),
    ];
    scope.step(value, reads, slotsOf(y), (listing) =>
      keys.flatMap(({ range, ...of }, index) => [
        ...quantiseRows({
          ...this.#rowsOfHeads(q, range, listing),
          rows: rowsOf(q.value, listing),
          y: operandsOf(queries, listing),
        }),
        fastAttentionDispatch(variant, this.#shape(y), {
          ...this.#run(y, range, listing),
          q: operandsOf(queries, listing),
          k: operandsOf(of, listing),
          v: valuesOf(values[index] as RoundedValues, listing),
        }),
      ]),
    );
  }

  /** All keys in 8 bits by ranges: once, as all chunks' keys are there before the first queries. */
  #roundKeys(): readonly (RoundedHeads & { readonly range: HeadRange })[] {
    const { scope, k, headSize, ranges } = this;
    const heads = columns(k.value) / headSize;
    const mean = scope.lifetimes.take(4 * heads * headSize);
    return ranges.map((range) => {
      const of = this.#take(range.count * scope.tokens);
      scope.stepBefore(k.value, slotsOf(k.place), [mean, of.values, of.scales], (listing) =>
        quantiseRows({
          ...this.#rowsOfHeads(k, range, listing),
          rows: scope.tokens,
          y: operandsOf(of, listing),
          mean: slotOperand(mean, listing),
        }),
      );
      // The rows are rounded by a second dispatch, which reads the mean.
      scope.lifetimes.stepBefore([mean], [of.values, of.scales]);
      return { range, ...of };
    });
  }

  /** All values in 8 bits by ranges, as keys are. */
  #roundValues(): readonly RoundedValues[] {
    const { scope, v, headSize, ranges: all } = this;
    return all.map((range) => {
      const { tokens, lifetimes } = scope;
      const values = lifetimes.take(4 * range.count * packedValues(tokens, headSize));
      const ranges = lifetimes.take(4 * range.count * 2 * headSize);
      scope.stepBefore(v.value, slotsOf(v.place), [values, ranges], (listing) =>
        quantiseValues({
          ...this.#rowsOfHeads(v, range, listing),
          rows: tokens,
          y: valuesOf({ values, ranges }, listing),
        }),
      );
      // Words are made by a second dispatch, which reads the ranges.
      lifetimes.stepBefore([ranges], [values]);
      return { values, ranges };
    });
  }

  #biasOf(slot: Slot, listing: Listing) {
    const pairs = rowsOf(this.q.value, listing) * rowsOf(this.k.value, listing);
    const heads = columns(this.value) / this.headSize;
    return { tensor: slotOperand(slot, listing, 4 * heads * pairs), headStride: pairs };
  }

  #take(rows: number): RoundedHeads {
    const { lifetimes } = this.scope;
    const words = packedWidth(this.headSize);
    return { values: lifetimes.take(4 * rows * words), scales: lifetimes.take(4 * rows) };
  }

  /** What is to be stored in 8 bits. */
  #rowsOfHeads(of: Placed, range: HeadRange, listing: Listing) {
    const { headSize } = this;
    const { storage } = of.place;
    return { x: this.#heads(of, range, listing), storage, headSize, heads: range.count };
  }

  #heads({ value, place }: Placed, range: HeadRange, listing: Listing) {
    return headView(value, place, this.headSize, range, listing);
  }

  #shape(y: Place): AttentionShape {
    return {
      headSize: this.headSize,
      q: this.q.place.storage,
      kv: this.v.place.storage,
      out: y.storage,
      bias: this.bias ? 'full' : this.lastBias === null ? 'none' : 'last',
    };
  }

  /** What the dispatches of both kinds have. */
  #run(y: Place, range: HeadRange, listing: Listing) {
    const { value, k, q, scope } = this;
    return {
      out: this.#heads({ value, place: y }, range, listing),
      heads: range.count,
      rows: rowsOf(q.value, listing),
      keys: hasTokenRows(k.value) ? scope.tokens : rowsOf(k.value, listing),
      scale: this.scale,
    };
  }
}

function operandsOf({ values, scales }: RoundedHeads, listing: Listing) {
  return { values: slotOperand(values, listing), scales: slotOperand(scales, listing) };
}

function valuesOf({ values, ranges }: RoundedValues, listing: Listing) {
  return { values: slotOperand(values, listing), ranges: slotOperand(ranges, listing) };
}

/** `softmax(q·kᵀ/√headSize)·v`; that of the clip's tokens to each other is fast where there is a kernel for it. */
export function attentionSteps(scope: GraphScope, value: Value): void {
  const steps = new AttentionSteps(scope, value);
  const { fastAttention } = scope.kernels;
  if (fastAttention && steps.isOfClip) {
    steps.fast(fastAttention);
  } else {
    steps.exact();
  }
}
