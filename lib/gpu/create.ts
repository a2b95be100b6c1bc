import type { KernelCheck } from '../contract';
import type { Backend } from './backend';
import { type GpuOptions, probeDevice, subgroups } from './device';
import { browserRuntime, type Runtime } from './runtime/session';
import { selfTest } from './self-test';
import { WasmBackend } from './wasm-backend';
import { WebGpuBackend } from './webgpu-backend';

/** How a backend is made. */
export interface BackendOptions extends GpuOptions {
  /** ONNX Runtime's module; the browser's build when absent. */
  readonly runtime?: Runtime;
}

/**
 * Makes a backend.
 *
 * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
 */
export async function createBackend(
  kind: Backend['kind'],
  options: BackendOptions = {},
): Promise<Backend> {
  const runtime = async () => options.runtime ?? browserRuntime();
  if (kind === 'wasm') return new WasmBackend(runtime);
  return WebGpuBackend.create(await runtime(), options);
}

/** A backend, and what the self-test says of it. */
export interface TestedBackend {
  readonly backend: Backend;
  readonly checks: readonly KernelCheck[];
}

/**
 * Makes a backend on the GPU and tests its numbers before anything is computed on it. Where they are wrong with
 * subgroups, the device is opened once more without them, and the backend's `refused` says so.
 *
 * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
 */
export async function createTestedBackend(options: GpuOptions): Promise<TestedBackend> {
  const tested = await createAndTest(options);
  const { backend, checks } = tested;
  if (!hasSubgroups(backend)) return tested;
  backend.refused = [];
  if (checks.every(({ usable }) => usable)) return tested;
  await backend.dispose();
  const second = await createAndTest({ subgroups: false });
  second.backend.refused = [subgroups];
  return second;
}

/**
 * An emulated GPU is tested only with subgroups: it computes with the CPU's own arithmetic, and would take seconds to
 * compile the test.
 */
async function createAndTest(options: GpuOptions): Promise<TestedBackend> {
  const backend = await createBackend('webgpu', options);
  try {
    const needless = !hasSubgroups(backend) && (await probeDevice()).software;
    return { backend, checks: needless ? [] : await selfTest(backend) };
  } catch (error) {
    // The first fault is reported.
    await backend.dispose().catch(() => undefined);
    throw error;
  }
}

const hasSubgroups = ({ compute }: Backend) => compute?.features.has(subgroups) ?? false;
