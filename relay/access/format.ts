import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a key opens: the API, the worker protocol, or the keys page (once). */
export type KeyKind = 'api' | 'worker' | 'sign-in';

const prefixes = { api: 'kn', worker: 'kw', 'sign-in': 'ks' } as const satisfies Record<
  KeyKind,
  string
>;
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secretBytes = 32;
/** Base-62 digits that hold 256 bits: 62⁴³ > 2²⁵⁶. */
const secretDigits = 43;
const idDigits = 8;
const keyPattern = new RegExp(
  `^(kn|kw|ks)_([0-9A-Za-z]{${idDigits}})_[0-9A-Za-z]{${secretDigits}}$`,
);

/** A new key: `<prefix>_<8-character id>_<32 bytes in base 62>`. */
export function mintKey(kind: KeyKind): { id: string; key: string } {
  // The last digits of a random 256-bit number are uniform enough.
  const id = base62(randomBytes(secretBytes)).slice(-idDigits);
  return { id, key: `${prefixes[kind]}_${id}_${base62(randomBytes(secretBytes))}` };
}

export function idOfKey(key: string): string | null {
  return keyPattern.exec(key)?.[2] ?? null;
}

export function isKeyId(text: string): boolean {
  return /^[0-9A-Za-z]{8}$/.test(text);
}

/** SHA-256, hex. A slow password hash is not needed, as 256 random bits cannot be guessed. */
export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

export function sameText(left: string, right: string): boolean {
  // `timingSafeEqual` needs equal lengths, which hashes have.
  const [a, b] = [left, right].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

/** How a key is shown in lists: `kn_abcd1234…wxyz`. */
export function hintOf(kind: KeyKind, id: string, last4: string): string {
  return `${prefixes[kind]}_${id}…${last4}`;
}

/** Big-endian bytes as base-62 digits, padded to {@link secretDigits}. */
function base62(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < secretDigits) {
    text = digits.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}
