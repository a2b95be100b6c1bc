import { type DeviceReport, KinoraError } from '../contract';
import { isSoftware, matrixFeature } from '../contract/kernel-setting';
import type { Compute } from './kernels/compute';

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

const adapterOptions: GPURequestAdapterOptions = { powerPreference: 'high-performance' };

/** Describes the GPU without requesting a device. */
export async function probeDevice(): Promise<DeviceReport> {
  const nothing = {
    adapter: { vendor: '', architecture: '', device: '', description: '' },
    software: false,
    features: [],
    limits: {},
  };
  if (!('gpu' in navigator)) return { outcome: 'no-webgpu', ...nothing };
  const adapter = await navigator.gpu.requestAdapter(adapterOptions);
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
 * Requests a device with the adapter's limits, and with f16 and timestamps where there are any. Subgroups
 * are requested only from width 8: with narrower ones ONNX Runtime's attention computes wrong numbers
 * without an error (README, "The device").
 *
 * @throws KinoraError `WEBGPU_MISSING` or `ADAPTER_MISSING`
 */
export async function requestDevice(): Promise<Gpu> {
  if (!('gpu' in navigator)) throw new KinoraError('WEBGPU_MISSING');
  const adapter = await navigator.gpu.requestAdapter(adapterOptions);
  if (!adapter) throw new KinoraError('ADAPTER_MISSING');
  const wanted: GPUFeatureName[] = [
    'shader-f16',
    'timestamp-query',
    matrixFeature as GPUFeatureName,
  ];
  if (adapter.info.subgroupMinSize >= 8) wanted.push('subgroups');
  const device = await adapter.requestDevice({
    label: 'kinora',
    requiredFeatures: wanted.filter((feature) => adapter.features.has(feature)),
    requiredLimits: limitsOf(adapter),
  });
  return { device, software: isSoftware(adapter.info), matrices: matricesOf(adapter) };
}
