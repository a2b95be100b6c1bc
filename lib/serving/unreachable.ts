/** The relay could not be reached, or something before it answered: it may pass. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}
