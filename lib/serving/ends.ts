import { type ErrorRecord, KinoraError } from '../contract/errors';
import { ApiError } from '../contract/v3/errors';
import { Unreachable } from './unreachable';

/** Why a connection ended, for people; null for what is no matter of the connection. */
export function reasonOf(thrown: unknown): string | null {
  if (thrown instanceof Unreachable) return `${capital(thrown.message)}.`;
  if (thrown instanceof ApiError) return thrown.message;
  return null;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Nothing but another token helps. */
export function refusalOf(sentence: string): ErrorRecord {
  return new KinoraError('REQUEST_INVALID', sentence, {
    remedy:
      'Use a worker token of this server: its Keys page makes one, and so does “npm run keys”.',
  }).toRecord();
}
