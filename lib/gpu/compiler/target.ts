import type { Graph } from '../../graph';
import type { Backend } from '../backend';
import type { Executor } from '../executor';
import type { Compute, KernelChoice, Storage } from '../kernels';
import { RuntimeExecutor } from '../runtime/executor';
import { openTokens } from '../simd/simd-tokens';
import type { GraphSizes } from './placeholders';
import { Program } from './program';
import type { KernelSet } from './scope';

/** What graphs are compiled for. */
export interface KernelTarget {
  readonly choice: KernelChoice | null | undefined;
  readonly limits: Compute['limits'];
  /** Most bytes of a buffer. */
  readonly maxBufferBytes: number;
}

/** The kernels of a choice that compute graphs; null where the runtime does. */
export function kernelSet(choice: KernelChoice | null | undefined): KernelSet | null {
  if (!choice?.linear || !choice.attention) return null;
  const { linear, attention, fastLinear = null, fastAttention = null } = choice;
  const { matrixAttention = null, storage = 'f16' } = choice;
  return { linear, attention, fastLinear, fastAttention, matrixAttention, storage };
}

/**
 * Compiles graphs without a device; null where the runtime computes them.
 *
 * @throws Refusal
 */
export function compileGraphs(
  { choice, limits, maxBufferBytes }: KernelTarget,
  graphs: Iterable<Graph>,
  sizes: GraphSizes,
): Program | null {
  const kernels = kernelSet(choice);
  return kernels && new Program(graphs, { kernels, limits, ...sizes }, maxBufferBytes);
}

/**
 * The executor of graphs on a backend: kernels of our own where its choice or the CPU has them, else the runtime.
 *
 * @param storage of rows between two calls; that of the choice when absent
 * @throws Refusal where kernels are to compute and do not
 * @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device
 */
export async function openExecutor(
  backend: Backend,
  graphs: Iterable<Graph>,
  sizes: GraphSizes,
  storage?: Storage,
): Promise<Executor> {
  const { compute, kernels, maxBufferBytes } = backend;
  const choice = kernels && { ...kernels, ...(storage && { storage }) };
  const target = compute && { choice, limits: compute.limits, maxBufferBytes };
  const program = target && compileGraphs(target, graphs, sizes);
  if (program) return program.open(backend);
  return openTokens(backend, graphs, sizes) ?? new RuntimeExecutor(backend);
}
