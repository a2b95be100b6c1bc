import type { Backend } from '../../gpu';
import {
  benchTextEncoder,
  benchTransformer,
  benchUpBlock,
  type StageOptions,
  type StageResult,
} from '../../models/wan22/benchmark/stages';
import type { ModelConfig } from '../../models/wan22/config';

export {
  clipOfTokens,
  type StageOptions,
  type StageResult,
} from '../../models/wan22/benchmark/stages';

/**
 * Measures one layer of each part of a model with random weights of its real widths.
 *
 * @param onResult takes each line as it is known
 */
export async function benchmarkModel(
  backend: Backend,
  config: ModelConfig,
  options: StageOptions,
  onResult: (result: StageResult) => void,
): Promise<StageResult[]> {
  const results: StageResult[] = [];
  for (const stage of [benchTransformer, benchTextEncoder, benchUpBlock]) {
    for (const result of await stage(backend, config, options)) {
      results.push(result);
      onResult(result);
    }
  }
  return results;
}
