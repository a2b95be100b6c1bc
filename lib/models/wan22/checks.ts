import type { BenchmarkFamily } from '../../pipeline/benchmark';
import type { ParityFamily } from '../../pipeline/parity';
import { wanBenchmarkStages } from '../wan/benchmark/stages';
import { readModelConfig } from './config';
import { wan22ParityStages } from './parity';

/** What the developers' commands measure and compare of Wan2.2-TI2V. */
export const wan22Checks: ParityFamily & BenchmarkFamily = {
  // Its references were the first, and name no family.
  recognises: (golden) => typeof golden === 'object' && golden !== null && 'dit_timestep' in golden,
  parityStages: wan22ParityStages,
  async benchmarkStages(configuration, options) {
    return wanBenchmarkStages(await readModelConfig(configuration), options);
  },
};
