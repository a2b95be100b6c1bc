import { gaussianNoise } from '../../pipeline/noise';
import { runCases } from './cases';

/** The noise that a clip starts from. */
export function benchNoise(): Promise<void> {
  const count = 48 * 31 * 44 * 80;
  const run = () => gaussianNoise({ seed: 7, stream: 0, count });
  return runCases([
    { name: 'noise of a 5B clip (1280×704×121)', unit: 'values', amount: count, run },
  ]);
}
