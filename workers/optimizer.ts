import { startOptimizer } from '../lib/engine/optimizer';
import { modelFamilies } from '../lib/models';
import { optimizePrompt } from '../lib/prompts';
import { findLanguageModel } from '../lib/weights/store';

startOptimizer({
  families: modelFamilies,
  find: () => findLanguageModel(),
  optimize: optimizePrompt,
});
