import {
  type DeviceReport,
  type KernelRecord,
  type KernelSetting,
  KinoraError,
  type ProgressEvent,
  usualKernels,
} from '../contract';
import { type Backend, type Compute, probeDevice, Scope } from '../gpu';
import { modeFor } from '../gpu/kernels/assign';
import type { KernelChoice } from '../gpu/kernels/choice';
import { familiesOf, kernelSetOf, modeOf, tunedFamilies } from '../gpu/kernels/families';
import { familyOf, type KernelMode } from '../gpu/kernels/kernel';
import { measurePeak, quickPeak } from '../gpu/kernels/peak';
import type { Peak } from '../gpu/kernels/peak-rate';
import {
  emptyRecord,
  isNameless,
  isOfOther,
  mostLosses,
  openRecord,
  peakOf,
  recordId,
  type TuningRecord,
  withLoss,
} from '../gpu/kernels/record';
import { type TuneOptions, type TuningResult, tune } from '../gpu/kernels/tune';
import { usualArithmetic } from '../gpu/simd/kernels';
import { KinoraDatabase } from '../predictions/database';
import { loadSetting, saveSetting } from '../predictions/settings';

const unusable =
  'Kinora’s kernels are not used on this GPU: it was lost twice with them, or some do not compile or compute wrong numbers.';

type Report = (event: ProgressEvent) => void;

/** The kernels of our own on an engine's device: chosen, checked and measured on it. */
export class EngineKernels {
  readonly #database = new KinoraDatabase();
  /** The kernels of a backend, by its mode. */
  readonly #kernels = new WeakMap<Backend, Map<KernelMode, KernelChoice | null>>();
  /** What {@link kernelSetOf} says of a device: it writes the texts of all kernels. */
  readonly #sets = new WeakMap<Compute, string>();
  #skip = new AbortController();
  #mode: KernelMode | null = null;

  /**
   * Lets a backend compute with the kernels of a setting. At first use on a GPU they are measured, which takes ten
   * seconds at most; later they are only checked. It reports which kernels compute instead of those of the setting.
   *
   * @param requested what is usual on the device when absent
   * @throws KinoraError `KERNELS_UNAVAILABLE` where kernels were asked for and the runtime would compute
   */
  async use(
    backend: Backend,
    requested: KernelSetting | undefined,
    report: Report,
    signal: AbortSignal,
  ): Promise<void> {
    backend.kernels = null;
    this.#mode = null;
    backend.compute?.used.clear();
    if (backend.compute) backend.compute.clamped.count = 0;
    backend.runtimeOnly = requested === 'runtime';
    if (!backend.compute) return;
    const device = await probeDevice();
    const setting = requested ?? usualKernels(device.software);
    if (setting === 'runtime') return;
    const mode = await this.#modeFor(backend, backend.compute, setting, device);
    const byMode = this.#kernels.get(backend) ?? new Map<KernelMode, KernelChoice | null>();
    this.#kernels.set(backend, byMode);
    const known = byMode.get(mode);
    const kernels = known === undefined ? await this.#make(backend, mode, report, signal) : known;
    byMode.set(mode, kernels);
    const computes = kernels && modeOf(kernels);
    if (!computes && requested) throw new KinoraError('KERNELS_UNAVAILABLE', unusable);
    if (computes !== setting) {
      const instead = computes ? 'exact' : 'runtime';
      report({ type: 'kernels', asked: setting, computes: instead, reason: null });
    }
    backend.compute.used.clear();
    backend.kernels = kernels;
    this.#mode = kernels && mode;
  }

  /** Measures again, or checks only on an emulated GPU; the result is used from the next run on. */
  async tune(
    backend: Backend,
    mode: KernelMode,
    report: Report,
    signal: AbortSignal,
  ): Promise<void> {
    const { compute } = backend;
    if (!compute) return;
    const before = await this.#open(backend);
    await this.#save({ ...before, modes: {}, losses: 0 });
    this.#kernels.delete(backend);
    compute.peak = null;
    const { software } = await probeDevice();
    await this.#make(backend, await modeFor(backend, compute, mode, software), report, signal);
  }

  /** A peak that is stored is not measured again, unless it may be that of another GPU. */
  async #modeFor(backend: Backend, compute: Compute, mode: KernelMode, device: DeviceReport) {
    if (mode === 'fast' && !isNameless(device)) {
      compute.peak ??= peakOf(await this.#open(backend));
    }
    return modeFor(backend, compute, mode, device.software);
  }

  skip(): void {
    this.#skip.abort();
  }

  /** The kernels that have computed since {@link use}. */
  recordOf({ compute, runtimeOnly }: Backend): KernelRecord {
    if (!compute) {
      // Products that are rounded before they are added give other last bits.
      const vectors = { mode: 'exact', keys: [`vectors, ${usualArithmetic()}`] } as const;
      return runtimeOnly ? { mode: 'runtime', keys: [] } : vectors;
    }
    const keys = [...compute.used].sort();
    const { count: clamped } = compute.clamped;
    // A kernel of `exact` computes what the mode has no kernel for: a whole run if no kernel of the mode was right.
    const ofMode = keys.some((key) => key.startsWith(`${this.#mode} `));
    const mode = this.#mode && (ofMode ? this.#mode : 'exact');
    return {
      mode: (keys.length > 0 && mode) || 'runtime',
      keys,
      ...(clamped > 0 && { clamped }),
    };
  }

  /** A run has succeeded: what lost the GPU before was another cause, or is excluded. */
  async succeeded(backend: Backend): Promise<void> {
    if (!backend.kernels) return;
    const record = await this.#open(backend);
    if (record.losses > 0) await this.#save({ ...record, losses: 0 });
  }

  /** The device is lost: the variant that was running is not used again. */
  async lost(backend: Backend): Promise<void> {
    const { compute, kernels } = backend;
    if (!compute || !kernels) return;
    const record = await this.#open(backend);
    const tuned = record.modes[kernels.mode];
    const running = compute.unfinished.map(familyOf);
    const family = familiesOf(kernels.mode).find((name) => running.includes(name));
    const winner = family && tuned?.winners[family];
    await this.#save(withLoss(record, winner?.key ?? null));
  }

  /** Null where no family has a variant that can be used. */
  async #make(
    backend: Backend,
    mode: KernelMode,
    report: Report,
    signal: AbortSignal,
  ): Promise<KernelChoice | null> {
    const { compute } = backend;
    if (!compute) return null;
    let record = await this.#open(backend);
    const device = await probeDevice();
    const timing = !device.software;
    const measured = async () => {
      compute.peak ??= await measurePeak(backend, compute, quickPeak);
      return compute.peak;
    };
    let peak: Peak | null = null;
    if (timing && record.peak !== null && isNameless(device)) {
      peak = await measured();
      if (isOfOther(record, peak.multiplyAdd)) record = emptyRecord(record.kernelSet);
    }
    if (backend.refused) record = { ...record, refused: backend.refused };
    // At once, so that a variant which has lost the device is counted once.
    await this.#save(record);
    if (record.losses >= mostLosses) return null;
    this.#skip = new AbortController();
    const scope = new Scope(backend);
    try {
      const compile: Compute['compile'] = (kernels) => compute.compile(kernels);
      const families = tunedFamilies({ backend, compute, mode, timing, scope });
      const known = record.modes[mode];
      const onTrying = (trying: string | null) => {
        record = { ...record, trying };
        return this.#save(record);
      };
      if (known && (await stillRight(known, { families, compile, onTrying, timing: false }))) {
        return kernelsOf(backend, mode, known);
      }
      if (timing) peak ??= await measured();
      const peaks = { peak: peak?.multiplyAdd ?? null, integerPeak: peak?.integerDot ?? null };
      record = { ...record, ...peaks };
      let total = 0;
      const result = await tune({
        families,
        compile,
        timing,
        onTrying,
        excluded: record.excluded,
        skip: this.#skip.signal,
        onProgress: (progress) => {
          signal.throwIfAborted();
          total = progress.total;
          report({ type: 'tuning', done: progress.done, total });
        },
        onRate: ({ key }, rate) => compute.rates.set(key, rate),
      });
      report({ type: 'tuning', done: total, total });
      const date = new Date().toISOString();
      const tuned = { ...result, date, skipped: this.#skip.signal.aborted };
      const modes = { ...record.modes, [mode]: tuned };
      await this.#save({ ...record, modes });
      return kernelsOf(backend, mode, result);
    } finally {
      scope.dispose();
      backend.resetPeaks();
    }
  }

  async #open({ compute }: Backend): Promise<TuningRecord> {
    const set = compute ? (this.#sets.get(compute) ?? kernelSetOf(compute)) : '';
    if (compute) this.#sets.set(compute, set);
    const stored = await loadSetting(this.#database, await this.#id()).catch(() => null);
    return openRecord(stored, set);
  }

  async #save(record: TuningRecord): Promise<void> {
    // A record that could not be stored is measured again.
    await saveSetting(this.#database, await this.#id(), record).catch(() => undefined);
  }

  async #id(): Promise<string> {
    return recordId(await probeDevice(), navigator.userAgent);
  }
}

/** Whether the winners still compute right numbers: a driver may have changed that the adapter does not tell. */
async function stillRight({ winners }: TuningResult, options: TuneOptions): Promise<boolean> {
  const families = options.families.map((tuned) => ({
    ...tuned,
    candidates: tuned.candidates.filter(({ key }) => key === winners[tuned.family]?.key),
  }));
  const again = await tune({ ...options, families });
  return families.every(({ family }) => winners[family]?.key === again.winners[family]?.key);
}

function kernelsOf(
  backend: Backend,
  mode: KernelMode,
  { winners }: TuningResult,
): KernelChoice | null {
  const families = familiesOf(mode);
  if (families.every((family) => !winners[family])) return null;
  const variants = families.map((family) => {
    const winner = winners[family];
    if (winner && winner.rate !== null) backend.compute?.rates.set(family, winner.rate);
    return [family, winner?.variant ?? null];
  });
  // The record keeps what the families gave.
  return { mode, ...Object.fromEntries(variants) } as KernelChoice;
}
