import { type ErrorCode, KinoraError, toKinoraError } from '../contract';
import { SourceChanged } from '../weights/formats/byte-source';

/** Failures of the connection: they end by themselves. */
const passing: readonly ErrorCode[] = ['HUB_UNREACHABLE', 'HUB_BUSY'];

export function isPassing({ code }: KinoraError): boolean {
  return passing.includes(code);
}

/** Whether what was fetched is worth nothing, and another attempt may be. */
export function startsOver(thrown: unknown): boolean {
  const corrupt = thrown instanceof KinoraError && thrown.code === 'DOWNLOAD_CORRUPT';
  return corrupt || thrown instanceof SourceChanged;
}

/** Why a download failed, for its user. */
export function explained(thrown: unknown): KinoraError {
  if (!(thrown instanceof SourceChanged)) return toKinoraError(thrown);
  return new KinoraError('DOWNLOAD_CORRUPT', thrown.message, { cause: thrown });
}
