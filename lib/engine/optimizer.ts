import {
  appUrl,
  demonstrationModel,
  exposeWorker,
  KinoraError,
  type OptimizerApi,
  type OptimizerRequest,
  type PromptLength,
  type PromptOptimization,
} from '../contract';
import { type OptimizerDependencies, optimizeWithInstalled } from '../language-model';
import type { ModelFamilies, VideoModel } from '../pipeline/model';
import { openModel } from '../pipeline/open';
import { openModelStore } from '../weights/store';

/** Dependencies of an optimizer. */
export interface OptimizerWorkerDependencies extends OptimizerDependencies {
  readonly families: ModelFamilies;
  /** Address of the folder of bundled and listed models; `/models/` of this origin when absent. */
  readonly manifests?: URL;
}

/** The prompt optimiser of the studio, behind the interface that the page speaks. */
export class Optimizer implements OptimizerApi {
  readonly #dependencies: OptimizerWorkerDependencies;
  /** The last tokenizer, by the id of its model. */
  #meter:
    | { readonly model: string; readonly measure: Promise<(text: string) => PromptLength> }
    | undefined;

  constructor(dependencies: OptimizerWorkerDependencies) {
    this.#dependencies = dependencies;
  }

  async optimize(
    { prompt, model, seed, timeLimitMs }: OptimizerRequest,
    onText?: (soFar: string) => void,
  ): Promise<PromptOptimization> {
    return optimizeWithInstalled(this.#dependencies, prompt, {
      seed,
      countTokens: async (text) => (await this.measurePrompt(model, text)).tokens,
      // The page ends the worker instead.
      signal: new AbortController().signal,
      timeLimitMs,
      onText,
    });
  }

  async measurePrompt(model: string, text: string): Promise<PromptLength> {
    if (this.#meter?.model !== model) {
      const measure = this.#open(model).then((opened) => opened.promptMeter());
      this.#meter = { model, measure };
    }
    return (await this.#meter.measure)(text);
  }

  async #open(id: string): Promise<VideoModel> {
    const sources = {
      families: this.#dependencies.families,
      manifests: this.#dependencies.manifests ?? appUrl('/models/'),
      store: await openModelStore(),
    };
    try {
      return await openModel(id, sources);
    } catch (thrown) {
      const absent = thrown instanceof KinoraError && thrown.code === 'MODEL_NOT_INSTALLED';
      // Its tokenizer has fewer pieces, so that a text counts at least as many tokens.
      if (absent && id !== demonstrationModel) return openModel(demonstrationModel, sources);
      throw thrown;
    }
  }
}

/** Starts an optimizer in this worker; the page speaks to it over Comlink. */
export function startOptimizer(dependencies: OptimizerWorkerDependencies): void {
  exposeWorker(new Optimizer(dependencies));
}
