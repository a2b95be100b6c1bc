import { readdirSync } from 'node:fs';
import * as ort from 'onnxruntime-web';
import { importTestPackage } from '../../../cli/dev/test-packages';
import type { Runtime } from '../../runtime/session';
import { WebGpuBackend } from '../../webgpu-backend';

/** npm `webgpu`. */
interface Dawn {
  create(flags: readonly string[]): GPU;
  readonly globals: object;
}

/** Where Linux distributions list Vulkan drivers. */
const driverFolder = '/usr/share/vulkan/icd.d';

const remedy =
  "install Mesa 25's Vulkan drivers (Debian: mesa-vulkan-drivers, for Debian 12 from bookworm-backports)";

/**
 * A backend in Node: Dawn, the WebGPU of Chromium, on Mesa's lavapipe, which computes on the CPU. Unlike SwiftShader
 * it has `shader-f16`. It runs kernels; there is no runtime, so `run` fails.
 *
 * @returns a sentence that says why there is none here
 */
export async function createDawnBackend(): Promise<WebGpuBackend | string> {
  const driver = lavapipeDriver();
  if (!driver) return `Dawn's tests need lavapipe: ${remedy}.`;
  // Read by the Vulkan loader when the instance is made.
  process.env.VK_DRIVER_FILES = driver;
  process.env.VK_ICD_FILENAMES = driver;
  process.env.XDG_RUNTIME_DIR ??= '/tmp';
  // Offers the matrix units, an experiment of Chromium's.
  const gpu = await createDawn(['enable-dawn-features=allow_unsafe_apis']);
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { gpu },
  });
  try {
    return await WebGpuBackend.create(ort as unknown as Runtime, { matrices: true });
  } catch (error) {
    return `Dawn has no device on ${driver} (${String(error)}): ${remedy}.`;
  } finally {
    // Other tests of this process must not take it for a browser.
    if (navigator) Object.defineProperty(globalThis, 'navigator', navigator);
    else Reflect.deleteProperty(globalThis, 'navigator');
  }
}

/** Dawn, with flags of its own. */
export async function createDawn(flags: readonly string[]): Promise<GPU> {
  const { create, globals } = await importTestPackage<Dawn>('webgpu/index.js');
  const gpu = create([...flags]);
  // Dawn aborts the process when the object that `create` gives is collected.
  Object.assign(globalThis, globals, { [`dawn ${flags.join(' ')}`]: gpu });
  return gpu;
}

function lavapipeDriver(): string | undefined {
  try {
    const name = readdirSync(driverFolder).find((file) => /^lvp_icd.*\.json$/.test(file));
    return name && `${driverFolder}/${name}`;
  } catch {
    return undefined;
  }
}
