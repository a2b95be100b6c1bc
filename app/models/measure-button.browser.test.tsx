import { createRoot } from 'react-dom/client';
import { afterEach, expect, test } from 'vitest';
import { KinoraError } from '../../lib/contract';
import { gpuLock } from '../../lib/predictions/locks';
import { MeasureButton } from './measure-button';
import { type GpuMemory, useGpuMemory } from './use-gpu-memory';

const box = document.body.appendChild(document.createElement('div'));
let root = createRoot(box);
afterEach(() => {
  root.unmount();
  root = createRoot(box);
});

/** Two places of a page that ask the same GPU. */
function Page() {
  const { gpu, measure } = useGpuMemory();
  return ['table', 'sheet'].map((id) => (
    <div key={id} id={id}>
      <MeasureButton gpu={gpu} onMeasure={() => measure(1e9)} />
    </div>
  ));
}

const textOf = (id: string) => document.getElementById(id)?.textContent ?? '';

test('while a video runs it says so where it was asked, and nowhere else', async () => {
  await navigator.locks.request(gpuLock, async () => {
    root.render(<Page />);
    await expect.poll(() => document.querySelector<HTMLElement>('#table button')).not.toBeNull();
    document.querySelector<HTMLElement>('#table button')?.click();
    await expect.poll(() => textOf('table')).toContain('A video is being made');
    expect(document.querySelector('#table .problem')).toBeNull();
    expect(textOf('sheet')).toBe('Check what fits my GPU');
  });
});

test('another reason is a problem of the one that asked; what was measured needs no button', async () => {
  const error = new KinoraError('ADAPTER_SOFTWARE').toRecord();
  const show = (gpu: GpuMemory) => root.render(<MeasureButton gpu={gpu} onMeasure={() => {}} />);
  show({ status: 'failed', error });
  await expect.poll(() => box.querySelector('button')).not.toBeNull();
  expect(box.querySelector('.problem')).toBeNull();
  box.querySelector('button')?.click();
  await expect.poll(() => box.querySelector('.problem')).not.toBeNull();
  show({ status: 'measured', bytes: 1e9 });
  await expect.poll(() => box.textContent).toBe('');
});
