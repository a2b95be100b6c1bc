import { KinoraError } from '../../contract';

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
