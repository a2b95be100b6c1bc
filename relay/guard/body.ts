import { Readable } from 'node:stream';
import { GuardError } from '../relay';
import { toGuardError } from './failure';

/**
 * An answer's body that ends with a GuardError when it is longer than allowed, breaks off or takes too
 * long. Bytes are counted as they come, so an announced length is not believed.
 *
 * @param onClose called once when nobody reads any more, however it ended
 */
export function limitedBody(
  source: Readable,
  host: string,
  maxBytes: number,
  onClose: () => void,
): Readable {
  // A body that nobody reads may still fail; that must not end the process.
  source.on('error', () => undefined);
  const body = Readable.from(limited(source, host, maxBytes), { objectMode: false });
  body.on('close', () => {
    source.destroy();
    onClose();
  });
  return body;
}

async function* limited(source: Readable, host: string, maxBytes: number) {
  let bytes = 0;
  try {
    for await (const chunk of source) {
      if (!(chunk instanceof Uint8Array)) continue;
      bytes += chunk.byteLength;
      if (bytes > maxBytes) throw tooLarge(host, maxBytes);
      yield chunk;
    }
  } catch (thrown) {
    throw toGuardError(thrown, host);
  }
}

/** The refusal of a body longer than allowed. */
export function tooLarge(host: string, maxBytes: number): GuardError {
  const bytes = maxBytes.toLocaleString('en');
  return new GuardError('too-large', `The answer of ${host} is larger than ${bytes} bytes.`);
}
