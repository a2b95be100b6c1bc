import { modelFamilies } from '../lib/models';
import { optimizePrompt } from '../lib/prompts';
import { findLanguageModel } from '../lib/weights/store';
import { startOptimizer } from './optimizer/optimizer';

startOptimizer({
  families: modelFamilies,
  find: () => findLanguageModel(),
  optimize: optimizePrompt,
});
