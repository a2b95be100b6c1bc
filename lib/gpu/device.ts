import { type DeviceReport, isSoftware, KinoraError, matrixFeature } from '../contract';
import type { Compute } from './kernels/compute';
import { subgroupSizeControl } from './kernels/kernel';
import { dividesRegisters } from './kernels/registers';

/** Limits that are raised to what the adapter has; ONNX Runtime asks for the same list. */
const raisedLimits = [
  'maxBufferSize',
  'maxStorageBufferBindingSize',
  'maxStorageBuffersPerShaderStage',
  'maxComputeWorkgroupStorageSize',
  'maxComputeInvocationsPerWorkgroup',
  'maxComputeWorkgroupSizeX',
  'maxComputeWorkgroupSizeY',
  'maxComputeWorkgroupSizeZ',
  'maxComputeWorkgroupsPerDimension',
] as const;

/** The optional feature that the runtime's kernels use where the device has it. */
export const subgroups = 'subgroups';

const adapterOptions: GPURequestAdapterOptions = { powerPreference: 'high-performance' };

/** Null where the browser has no WebGPU, or has it switched off: then WebKitGTK's is null, too. */
function webGpu(): GPU | null {
  return (navigator as Partial<Navigator>).gpu ?? null;
}

/** Describes the GPU without requesting a device. */
export async function probeDevice(): Promise<DeviceReport> {
  const nothing = {
    adapter: { vendor: '', architecture: '', device: '', description: '' },
    software: false,
    features: [],
    limits: {},
  };
  const gpu = webGpu();
  if (!gpu) return { outcome: 'no-webgpu', ...nothing };
  const adapter = await gpu.requestAdapter(adapterOptions);
  if (!adapter) return { outcome: 'no-adapter', ...nothing };
  const { vendor, architecture, device, description } = adapter.info;
  return {
    outcome: 'ready',
    adapter: { vendor, architecture, device, description },
    software: isSoftware(adapter.info),
    features: [...adapter.features].sort(),
    limits: limitsOf(adapter),
  };
}

/** The adapter's limits; a browser that does not know one of them keeps its default. */
function limitsOf(adapter: GPUAdapter): Record<string, number> {
  return Object.fromEntries(
    raisedLimits.flatMap((name) => {
      const limit: number | undefined = adapter.limits[name];
      return limit === undefined ? [] : [[name, limit]];
    }),
  );
}

/** A device, and whether the CPU emulates it. */
export interface Gpu {
  readonly device: GPUDevice;
  readonly software: boolean;
  /** Null where there are none. */
  readonly matrices?: NonNullable<Compute['matrices']> | null;
  /** Null where the browser does not tell. */
  readonly subgroupSizes?: NonNullable<Compute['subgroupSizes']> | null;
}

function subgroupSizesOf({ info }: GPUAdapter): NonNullable<Compute['subgroupSizes']> | null {
  const { subgroupMinSize: least, subgroupMaxSize: most } = info as Partial<GPUAdapterInfo>;
  return least && most ? { least, most } : null;
}

/** The matrices of f16 that an adapter multiplies with sums in f32. */
function matricesOf({ features, info }: GPUAdapter): NonNullable<Compute['matrices']> | null {
  const { subgroupMatrixConfigs = [] } = info as GPUAdapterInfo & {
    readonly subgroupMatrixConfigs?: Iterable<{
      readonly componentType: string;
      readonly resultComponentType: string;
      readonly M: number;
      readonly N: number;
      readonly K: number;
    }>;
  };
  if (!features.has(matrixFeature)) return null;
  const configs = [...subgroupMatrixConfigs]
    .filter((config) => config.componentType === 'f16' && config.resultComponentType === 'f32')
    .map(({ M: m, N: n, K: k }) => ({ m, n, k }));
  return configs.length > 0 ? { configs, subgroupSize: info.subgroupMaxSize } : null;
}

/**
 * Whether a device's compiler takes how kernels load matrices. The proposal once had the order of a matrix as an
 * argument, as Chromium 150 still has it.
 *
 * @param device with the feature {@link matrixFeature}
 */
export async function compilesMatrices(device: GPUDevice): Promise<boolean> {
  device.pushErrorScope('validation');
  device.createShaderModule({
    code: `enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
var<workgroup> tile: array<vec4<u32>, 32>;
@compute @workgroup_size(32) fn main() {
  let rows = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile, 0u, 2u);
}`,
  });
  return (await device.popErrorScope()) === null;
}

/** What a device is requested for. */
export interface GpuOptions {
  /** Whether for the mode `matrix`: with the GPU's matrix units, where there are any, and their subgroups. */
  readonly matrices?: boolean;
  /** Where false, the device has no subgroups, whatever they are good for. */
  readonly subgroups?: boolean;
}

/**
 * Requests a device with the adapter's limits, and with f16 and timestamps where there are any. Subgroups
 * are requested for the mode `matrix`, and for GPUs that need the choice of their size: where a device has them, ONNX
 * Runtime's attention uses them too, and computes wrong numbers on some (README, "The device").
 *
 * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
 */
export async function requestDevice(options: GpuOptions = {}): Promise<Gpu> {
  const gpu = webGpu();
  if (!gpu) throw new KinoraError('WEBGPU_MISSING');
  const adapter = await gpu.requestAdapter(adapterOptions);
  if (!adapter) throw new KinoraError('ADAPTER_MISSING');
  const { features, info } = adapter;
  const optional: GPUFeatureName[] = ['shader-f16', 'timestamp-query'];
  const sizes = subgroupSizesOf(adapter);
  if (options.subgroups !== false) {
    if (options.matrices && features.has(matrixFeature)) {
      optional.push(matrixFeature as GPUFeatureName, subgroups);
    }
    if (sizes && dividesRegisters(sizes) && features.has(subgroupSizeControl)) {
      optional.push(subgroupSizeControl as GPUFeatureName, subgroups);
    }
  }
  const device = await adapter.requestDevice({
    label: 'kinora',
    requiredFeatures: optional.filter((feature) => features.has(feature)),
    requiredLimits: limitsOf(adapter),
  });
  return {
    device,
    software: isSoftware(info),
    matrices:
      device.features.has(matrixFeature) && (await compilesMatrices(device))
        ? matricesOf(adapter)
        : null,
    subgroupSizes: sizes,
  };
}
