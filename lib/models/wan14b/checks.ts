import type { BenchmarkFamily } from '../../pipeline/benchmark';
import type { ParityFamily } from '../../pipeline/parity';
import { wanBenchmarkStages } from '../wan/benchmark/stages';
import { readModelConfig } from './config';
import { recognises14b, wan14bParityStages } from './parity';

/** What the developers' commands measure and compare of the 14B models. */
export const wan14bChecks: ParityFamily & BenchmarkFamily = {
  recognises: recognises14b,
  parityStages: wan14bParityStages,
  async benchmarkStages(configuration, options) {
    return wanBenchmarkStages(await readModelConfig(configuration), options);
  },
};
