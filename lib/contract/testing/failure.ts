import { KinoraError } from '../errors';

/** The error with which a call must fail. @throws what it throws otherwise, or Error when it succeeds */
export async function failureOf(call: Promise<unknown>): Promise<KinoraError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof KinoraError) return error;
    throw error;
  }
  throw new Error('It did not fail.');
}
