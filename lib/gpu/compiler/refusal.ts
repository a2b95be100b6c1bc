import { KinoraError } from '../../contract';
import type { Graph } from '../../graph';
import type { Compute, Dispatch, Kernel } from '../kernels';
import { checkJob } from '../kernels/run';

/** A graph that no kernels compute on a device. It is known before anything runs. */
export class Refusal extends KinoraError {
  /**
   * @param graph its name
   * @param call the call that is refused: its layer or operation
   * @param reason one clause: `has heads of 12`
   */
  constructor(
    readonly graph: string,
    readonly call: string,
    readonly reason: string,
  ) {
    const sentence = `Kinora’s kernels do not compute this model on this GPU: ${graph}: ${call} ${reason}.`;
    super('KERNELS_UNAVAILABLE', sentence);
  }
}

/**
 * Checks a dispatch of a graph against a device.
 *
 * @throws Refusal where its kernel binds more storage buffers than the device has, or one that is larger than a binding
 */
export function checkFits(
  graph: Graph,
  job: Dispatch,
  { bindingBytes, storageBuffers }: Compute['limits'],
): void {
  const { name, bindings } = job.kernel;
  if (bindings.length > storageBuffers) {
    throw new Refusal(graph.name, name, `binds ${bindings.length} buffers`);
  }
  try {
    checkJob(job, bindingBytes);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Refusal(graph.name, name, `does not fit: ${reason}`);
  }
}

/** A step for a graph, in which a shape without a kernel is a refusal of the call, not a RangeError. */
export function refusing<Listing, T>(graph: Graph, call: string, step: (listing: Listing) => T) {
  return (listing: Listing): T => {
    try {
      return step(listing);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new Refusal(graph.name, call, `is not computed: ${error.message}`);
    }
  };
}

/**
 * Compiles kernels on a device.
 *
 * @param kernels each with a graph that it is for
 * @param others are for no graph
 * @throws Refusal for one that the device does not compile
 */
export async function compileOn(
  compute: Compute,
  kernels: ReadonlyMap<Kernel, Graph>,
  others: readonly Kernel[] = [],
): Promise<void> {
  const [failure] = await compute.compile([...kernels.keys(), ...others]);
  if (!failure) return;
  const { kernel, reason } = failure;
  throw new Refusal(kernels.get(kernel)?.name ?? '', kernel.name, `fails: ${reason}`);
}
