import { createHash, randomInt, timingSafeEqual } from 'node:crypto';

/** What a key opens: the API, the worker protocol, or the keys page (once). */
export type KeyKind = 'api' | 'worker' | 'sign-in';

const prefixes = { api: 'kn', worker: 'kw', 'sign-in': 'ks' } as const satisfies Record<
  KeyKind,
  string
>;
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** Base-62 digits that hold 256 bits: 62⁴³ > 2²⁵⁶. */
const secretDigits = 43;
const idDigits = 8;
const keyPattern = new RegExp(
  `^(kn|kw|ks)_([0-9A-Za-z]{${idDigits}})_[0-9A-Za-z]{${secretDigits}}$`,
);

/** A new key: `<prefix>_<8-character id>_<256 random bits in base 62>`. */
export function mintKey(kind: KeyKind): { id: string; key: string } {
  const id = randomDigits(idDigits);
  return { id, key: `${prefixes[kind]}_${id}_${randomDigits(secretDigits)}` };
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

function randomDigits(count: number): string {
  return Array.from({ length: count }, () => digits.charAt(randomInt(digits.length))).join('');
}
