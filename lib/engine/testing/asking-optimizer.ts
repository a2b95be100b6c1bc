/** An optimizer that asks the language model once and takes what it says, for `optimizer.browser.test.ts`. */
import { modelFamilies } from '../../models';
import { startOptimizer } from '../optimizer';

/** File in the root of OPFS that is the installed language model. */
const installed = 'installed.gguf';

startOptimizer({
  families: modelFamilies,
  async find() {
    const root = await navigator.storage.getDirectory();
    const handle = await root.getFileHandle(installed).catch(() => null);
    return handle && { file: await handle.getFile(), name: 'tiny', sha256: '0'.repeat(64) };
  },
  async optimize(prompt, { model, seed, signal, onText, countTokens, timeLimitMs }) {
    const limit = AbortSignal.timeout(timeLimitMs ?? 20_000);
    const text = await model.generate({
      system: 'Continue.',
      user: prompt,
      seed,
      grammar: 'root ::= [a-z ]{300,400}',
      maxTokens: 800,
      signal: AbortSignal.any([signal, limit]),
      onText,
    });
    return {
      status: 'used',
      original: prompt,
      text,
      reasons: [`${await countTokens(prompt)} tokens`],
      model: model.name,
      sha256: model.sha256,
      seed,
      milliseconds: 0,
    };
  },
});
