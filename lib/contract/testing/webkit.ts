import { onTestFinished } from 'vitest';

/** Gives files the `move` of WebKit for one test: a name alone is a TypeError. */
export function withMoveOfWebKit(): void {
  const { prototype } = FileSystemFileHandle;
  const original = Object.getOwnPropertyDescriptor(prototype, 'move');
  const move: unknown = original?.value;
  if (!original || typeof move !== 'function') throw new Error('this browser has no move');
  onTestFinished(() => void Object.defineProperty(prototype, 'move', original));
  Object.defineProperty(prototype, 'move', {
    configurable: true,
    async value(this: FileSystemFileHandle, ...target: readonly unknown[]) {
      if (target.length < 2) throw new TypeError('Not enough arguments');
      return move.apply(this, target);
    },
  });
}
