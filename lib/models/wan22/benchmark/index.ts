import type { BenchmarkOptions, BenchmarkStage } from '../../../pipeline/benchmark';
import type { ModelConfig } from '../config';
import { benchTextEncoder, benchTransformer, benchUpBlock } from './stages';

/** One block of the transformer, one layer of the text encoder and one level of the VAE's decoder. */
export function wan22BenchmarkStages(
  config: ModelConfig,
  options: BenchmarkOptions,
): BenchmarkStage[] {
  return Object.entries({
    transformer: benchTransformer,
    'text encoder': benchTextEncoder,
    'VAE level': benchUpBlock,
  }).map(([name, measure]) => ({ name, run: (backend) => measure(backend, config, options) }));
}
