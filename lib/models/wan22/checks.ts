import type { BenchmarkFamily } from '../../pipeline/benchmark';
import { wanBenchmarkStages } from '../wan/benchmark/stages';
import { readModelConfig } from './config';

/** What the developers' commands measure of Wan2.2-TI2V. */
export const wan22Checks: BenchmarkFamily = {
  async benchmarkStages(configuration, options) {
    return wanBenchmarkStages(await readModelConfig(configuration), options);
  },
};
