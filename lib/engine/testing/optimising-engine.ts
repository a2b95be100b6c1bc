/** An engine whose language model is a tiny GGUF that is asked once, for `prompt.browser.test.ts`. */
import './short-videos';
import { modelFamilies } from '../../models';
import { startEngine } from '../engine';
import { installedTools } from '../tools';

startEngine({
  families: modelFamilies,
  tools: {
    ...installedTools,
    optimizer: {
      async find() {
        const response = await fetch('/lib/language-model/goldens/tiny-qwen3-Q8_0.gguf');
        const file = new File([await response.blob()], 'model.gguf');
        return { file, name: 'tiny', sha256: '0'.repeat(64) };
      },
      async optimize(prompt, { model, seed, signal, countTokens }) {
        const text = await model.generate({
          system: 'Continue.',
          user: prompt,
          seed,
          maxTokens: 100,
          signal,
          grammar: 'root ::= [a-z ]{20,40} "."',
        });
        const reasons = [`${await countTokens(prompt)} tokens`];
        const { name, sha256 } = model;
        return {
          status: 'used',
          original: prompt,
          text,
          reasons,
          model: name,
          sha256,
          seed,
          milliseconds: 1,
        };
      },
    },
  },
});
