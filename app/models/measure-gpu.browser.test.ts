import { expect, test } from 'vitest';
import { measureGpu } from './measure-gpu';

test('an emulated GPU is named, and not called fast', async () => {
  await expect(measureGpu(1e9)).rejects.toMatchObject({ code: 'ADAPTER_SOFTWARE' });
});
