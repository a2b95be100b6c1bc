import type { Backend } from '../../lib/contract/prediction';
import type { GpuState } from './use-gpu';

/** One line in the header: what the video will be computed on. */
export function GpuBadge({ gpu, backend }: { gpu: GpuState; backend: Backend }) {
  const { state, text, title } = describe(gpu, backend);
  return (
    <p className="badge" data-state={state} title={title} role="status">
      {text}
    </p>
  );
}

function describe(
  gpu: GpuState,
  backend: Backend,
): { state: string; text: string; title?: string } {
  if (backend === 'wasm') return { state: 'slow', text: 'CPU' };
  if (gpu.status === 'checking') return { state: 'checking', text: 'Checking the GPU …' };
  if (gpu.status === 'failed') return { state: 'bad', text: 'Engine failed' };
  const { outcome, software, adapter } = gpu.report;
  if (outcome === 'no-webgpu') return { state: 'bad', text: 'No WebGPU' };
  if (outcome === 'no-adapter') return { state: 'bad', text: 'No GPU found' };
  if (software) {
    return {
      state: 'slow',
      text: 'Software GPU: works, but slowly',
      title: 'The browser emulates a GPU on the CPU. Turn hardware acceleration on to be faster.',
    };
  }
  const name = [adapter.vendor, adapter.architecture].filter(Boolean).join(' ');
  return { state: 'good', text: name ? `GPU: ${name}` : 'GPU ready' };
}
