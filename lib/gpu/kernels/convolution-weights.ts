import type { DeviceTensor } from '../tensor';
import type { Dispatch } from './compute';
import { rowsOfTap, storageOf } from './convolution-run';
import { defineKernel, type Kernel, type Storage } from './kernel';
import { halfFunctions, store4, vectorBinding } from './text';

/** Where element (block, filter, channel, tap) of a kernel lies in a file's order: strides in elements. */
export interface FilterOrder {
  readonly blocks: number;
  readonly filters: number;
  readonly channels: number;
  /** Of one block. */
  readonly taps: number;
  readonly strides: {
    readonly block: number;
    readonly filter: number;
    readonly channel: number;
    readonly tap: number;
  };
  /** Of the first element. */
  readonly first?: number;
}

/** Rows of the weights of a kernel. */
export function packedRows({ blocks, channels, taps }: FilterOrder): number {
  return blocks * taps * rowsOfTap(channels);
}

/** Sizes of packed weights of so many rows. */
export function packedDims(rows: number, filters: number): readonly [number, number] {
  return [rows, Math.ceil(filters / 4) * 4];
}

/**
 * Writes weights as the convolution reads them: [block, tap, channel, filter], the channels of each tap filled
 * up with zeros to a multiple of 16, filters to one of 4.
 *
 * @param source f32 in the file's order
 * @param target `packedDims`
 * @param firstRow of the target
 */
export function packJob(
  source: DeviceTensor,
  order: FilterOrder,
  target: DeviceTensor,
  firstRow = 0,
): Dispatch {
  const { filters, channels, taps, strides, first = 0 } = order;
  const rows = packedRows(order);
  const vectors = packedDims(rows, filters)[1] / 4;
  return {
    kernel: kernels[storageOf(target)],
    operands: { source, packed: target },
    uniforms: {
      firstRow,
      rows,
      rowsOfTap: rowsOfTap(channels),
      taps,
      channels,
      filters,
      vectors,
      first,
      blockStride: strides.block,
      filterStride: strides.filter,
      channelStride: strides.channel,
      tapStride: strides.tap,
    },
    groups: Math.ceil((rows * vectors) / 64),
    flops: 100 * rows * vectors,
  };
}

const kernels = { f32: packKernel('f32'), f16: packKernel('f16') };

/** Kernels that {@link packJob} uses. */
export const packKernels: readonly Kernel[] = [kernels.f32, kernels.f16];

function packKernel(storage: Storage): Kernel {
  return defineKernel({
    name: `convolution weights ${storage}`,
    mode: 'exact',
    bindings: [
      { name: 'source', access: 'read', element: 'f32' },
      vectorBinding('packed', 'write', storage),
    ],
    uniforms: [
      'firstRow',
      'rows',
      'rowsOfTap',
      'taps',
      'channels',
      'filters',
      'vectors',
      'first',
      'blockStride',
      'filterStride',
      'channelStride',
      'tapStride',
    ],
    threads: 64,
    workgroupBytes: 0,
    declarations: `${halfFunctions}
fn weight(start: u32, number: u32) -> f32 {
  if (number >= uniforms.filters) { return 0.0; }
  return source[start + number * uniforms.filterStride];
}`,
    body: `
  let index = group * 64u + thread;
  let row = index / uniforms.vectors;
  let number = 4u * (index % uniforms.vectors);
  if (row >= uniforms.rows) { return; }
  let channel = row % uniforms.rowsOfTap;
  let place = row / uniforms.rowsOfTap;
  var value = vec4<f32>();
  if (channel < uniforms.channels) {
    let start = uniforms.first + (place / uniforms.taps) * uniforms.blockStride
      + (place % uniforms.taps) * uniforms.tapStride + channel * uniforms.channelStride;
    value = vec4<f32>(
      weight(start, number), weight(start, number + 1u),
      weight(start, number + 2u), weight(start, number + 3u));
  }
  let to = (uniforms.firstRow + row) * uniforms.vectors + number / 4u;
  ${store4('packed', storage, 'to', 'value')}`,
  });
}
