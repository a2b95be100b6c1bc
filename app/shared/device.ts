import { useSyncExternalStore } from 'react';
import {
  type Backend,
  backends,
  type DeviceOptions,
  type KernelSetting,
  kernelSettings,
} from '../../lib/contract';
import { t } from '../texts';
import { StoredValue } from './stored-value';

/** What computes the videos of this browser, and whether they are checked: the same in the studio and in the settings. */
export interface DeviceSetting {
  /** What a person has chosen; null for what is usual on the GPU of this browser (`gpu.tsx`). */
  readonly backend: Backend | null;
  /** Upper limit of GPU memory in GiB, as typed; empty means measured. */
  readonly memoryBudget: string;
  /** What computes on the GPU; null for what is usual on it. */
  readonly kernels: KernelSetting | null;
  readonly safetyChecker: boolean;
}

const stored = new StoredValue<DeviceSetting>(
  'kinora:device',
  { backend: null, memoryBudget: '', kernels: null, safetyChecker: true },
  read,
);

/** A stored setting; undefined for anything else. Without a schema: those are a large script. */
function read(json: unknown): DeviceSetting | undefined {
  const stored = (json ?? {}) as Partial<Record<keyof DeviceSetting, unknown>>;
  const { memoryBudget } = stored;
  const backend = backends.find((name) => name === stored.backend) ?? null;
  const kernels = kernelSettings.find((setting) => setting === stored.kernels) ?? null;
  if (typeof memoryBudget !== 'string') return undefined;
  return { backend, memoryBudget, kernels, safetyChecker: stored.safetyChecker !== false };
}

/** The setting as it is now; on the server the default. */
export const getDevice = stored.getSnapshot;

/** Changes the setting in all tabs; what is absent stays. */
export function changeDevice(changes: Partial<DeviceSetting>): void {
  const before = getDevice();
  const after = {
    backend: changes.backend ?? before.backend,
    memoryBudget: changes.memoryBudget ?? before.memoryBudget,
    kernels: changes.kernels ?? before.kernels,
    safetyChecker: changes.safetyChecker ?? before.safetyChecker,
  };
  const names = ['backend', 'memoryBudget', 'kernels', 'safetyChecker'] as const;
  if (names.some((name) => after[name] !== before[name])) stored.set(after);
}

/** What may be typed of the setting. */
export type TypedDevice = Pick<DeviceSetting, 'memoryBudget'>;

/** What a run's device is told by the settings of this browser; a limit that is not valid is none. */
export function deviceOptions(typed: TypedDevice = getDevice()): Omit<DeviceOptions, 'backend'> {
  return {
    memoryBudget: budgetError(typed) ? undefined : toBudgetBytes(typed),
    kernels: getDevice().kernels ?? undefined,
  };
}

/** The text of a memory limit in bytes. */
export function typedDevice({ memoryBudget: bytes }: Omit<DeviceOptions, 'backend'>): TypedDevice {
  return { memoryBudget: bytes === undefined ? '' : String(Number((bytes / 2 ** 30).toFixed(3))) };
}

/** The memory limit as `npm run generate` takes it; empty where there is none. */
export function memoryOption({ memoryBudget }: TypedDevice): string {
  return memoryBudget.trim();
}

/** The setting; renders again when any tab changes it. */
export function useDevice(): DeviceSetting {
  return useSyncExternalStore(stored.subscribe, stored.getSnapshot, stored.getServerSnapshot);
}

/** Range of the memory limit in GiB. The memory plan decides whether a model fits into it. */
export const budgetRange = { min: 0.001, max: 1024 } as const;

/** A memory limit in bytes; undefined if the field is empty, NaN if it is not a number. */
function toBudgetBytes({ memoryBudget }: TypedDevice): number | undefined {
  return memoryBudget.trim() === '' ? undefined : Math.round(Number(memoryBudget) * 2 ** 30);
}

/** What is wrong with a memory limit; undefined where nothing is. */
export function budgetError(typed: TypedDevice): string | undefined {
  const budget = toBudgetBytes(typed);
  const { min, max } = budgetRange;
  if (budget === undefined || (budget >= min * 2 ** 30 && budget <= max * 2 ** 30))
    return undefined;
  return t('shared.gpuMemoryRange', { min, max });
}
