import { gaussianNoise } from '../../pipeline/noise';
import { quantiseInt8Blocks } from '../../weights';
import { runCases } from './cases';

/** One linear layer of the 5B from f32 to blocks. */
export function benchQuantise(): Promise<void> {
  const [rows, columns] = [3072, 3072];
  const weight = gaussianNoise({ seed: 1, stream: 0, count: rows * columns });
  return runCases([
    {
      name: 'quantise 3072×3072 to 8-bit blocks',
      unit: 'bytes',
      amount: weight.byteLength,
      run: () => quantiseInt8Blocks(weight, rows, columns),
    },
  ]);
}
