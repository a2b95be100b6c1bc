import type { BenchmarkFamily } from '../../pipeline/benchmark';
import { wanBenchmarkStages } from '../wan/benchmark/stages';
import { readModelConfig } from './config';

/** What the developers' commands measure of the 14B models. */
export const wan14bChecks: BenchmarkFamily = {
  async benchmarkStages(configuration, options) {
    return wanBenchmarkStages(await readModelConfig(configuration), options);
  },
};
