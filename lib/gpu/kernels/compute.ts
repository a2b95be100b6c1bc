import type { DeviceTensor } from '../tensor';
import type { Kernel } from './kernel';
import type { Peak } from './peak-rate';

/** A tensor, or a range of it, as a kernel's buffer. */
export interface Operand {
  readonly tensor: DeviceTensor;
  /** Multiple of {@link offsetAlignment}. */
  readonly byteOffset?: number;
  /** To the tensor's end when absent. */
  readonly byteSize?: number;
}

/** A tensor as a whole, or a range of one. */
export type Span = DeviceTensor | Operand;

/** One run of a kernel. */
export interface Dispatch {
  readonly kernel: Kernel;
  /** By the names of the kernel's bindings. */
  readonly operands: Readonly<Record<string, Span>>;
  /** By the names of the kernel's uniforms. */
  readonly uniforms: Readonly<Record<string, number>>;
  /** Workgroups. */
  readonly groups: number;
  /** Floating point operations of all groups together, for the prediction of their time. */
  readonly flops: number;
}

/** Why a kernel cannot be used on a device. */
export interface KernelFailure {
  readonly kernel: Kernel;
  readonly reason: string;
}

/** A product that a matrix unit computes at once: [m, k]·[k, n] of f16, with sums in f32. */
export interface MatrixConfig {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** A device that runs kernels of our own, in one order with the runtime's work. */
export interface Compute {
  /** What kernels may ask for: GPU features and WGSL language features. */
  readonly features: ReadonlySet<string>;
  readonly limits: {
    /** Bytes of memory of a workgroup. */
    readonly workgroupBytes: number;
    /** Invocations of a workgroup. */
    readonly threads: number;
    /** Bytes of a binding. */
    readonly bindingBytes: number;
    /** Storage buffers of a kernel. */
    readonly storageBuffers: number;
  };
  /** What its matrix units compute, and the size of the largest subgroup; absent where there are none to be used. */
  readonly matrices?: { readonly configs: readonly MatrixConfig[]; readonly subgroupSize: number };
  /** Invocations of the smallest and the largest subgroups; absent where the browser does not tell. */
  readonly subgroupSizes?: { readonly least: number; readonly most: number };
  /**
   * Measured FLOP/s by kernel key, or by family for kernels that were not measured themselves. They bound how
   * much one dispatch is given.
   */
  readonly rates: Map<string, number>;
  /** What the device's arithmetic reaches; null before it was measured, and on an emulated GPU. */
  peak: Peak | null;
  /** Keys of the kernels that ran. */
  readonly used: Set<string>;
  /** Groups of four results that f16 does not hold, of the layers that count them: they were clamped. */
  readonly clamped: { count: number };
  /** Kernels that are not known to be done: one of them is to blame where the device is lost. */
  readonly unfinished: readonly Kernel[];
  /**
   * Compiles kernels in parallel.
   *
   * @param onProgress called with the number of kernels that are done
   * @returns those that this device cannot run
   */
  compile(
    kernels: readonly Kernel[],
    onProgress?: (done: number) => void,
  ): Promise<readonly KernelFailure[]>;
  /**
   * Runs kernels in order. A dispatch that is predicted to take over 0.3 s is split. Resolves when the work is
   * submitted, with no more than two submissions that are not done.
   *
   * @throws TypeError for an operand or a uniform that is missing or extra, or for a binding that is too large
   * @throws KinoraError when the device is lost
   */
  dispatch(jobs: readonly Dispatch[]): Promise<void>;
}

/** Bytes that an operand's offset must be a multiple of: WebGPU's largest `minStorageBufferOffsetAlignment`. */
export const offsetAlignment = 256;

/** Rows of a tensor as an operand. */
export interface RowView {
  readonly operand: Operand;
  /** Of the first wanted row within the operand: the offset of an operand must be aligned. */
  readonly firstRow: number;
}

/** The operands of a dispatch that are rows, by their names, and the uniforms that say which is the first: `xFirst`. */
export function rowOperands(views: Readonly<Record<string, RowView | undefined>>) {
  const given = Object.entries(views).flatMap(([name, view]) =>
    view ? [[name, view] as const] : [],
  );
  return {
    operands: Object.fromEntries(given.map(([name, { operand }]) => [name, operand])),
    uniforms: Object.fromEntries(given.map(([name, { firstRow }]) => [`${name}First`, firstRow])),
  };
}

/** All rows of a tensor. */
export function wholeRows(tensor: DeviceTensor): RowView {
  return { operand: { tensor }, firstRow: 0 };
}

/**
 * The rows `start` to `start + count` of a tensor, or of an aligned range of one, without a copy.
 *
 * @param rowBytes bytes of a row
 */
export function rowView(of: Span, start: number, count: number, rowBytes: number): RowView {
  const range = 'tensor' in of ? of : { tensor: of };
  const { tensor, byteOffset = 0 } = range;
  const bytes = range.byteSize ?? align16(tensor.bytes) - byteOffset;
  let first = start;
  while (first > 0 && (first * rowBytes) % offsetAlignment !== 0) first--;
  const from = first * rowBytes;
  const end = Math.min(align16((start + count) * rowBytes), align16(bytes));
  return {
    operand: { ...range, byteOffset: byteOffset + from, byteSize: end - from },
    firstRow: start - first,
  };
}

const align16 = (bytes: number) => Math.ceil(bytes / 16) * 16;

/** Whether a device runs workgroups of so many invocations with so much workgroup memory. */
export function fits(
  { limits }: Pick<Compute, 'limits'>,
  { threads, workgroupBytes }: Pick<Kernel, 'threads' | 'workgroupBytes'>,
): boolean {
  return threads <= limits.threads && workgroupBytes <= limits.workgroupBytes;
}
