import type { LoraFile } from '../../../lib/contract/engine';
import type { OptimizerApi } from '../../../lib/contract/optimizer';
import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
import { openBrowserModel } from '../../../lib/language-model/browser-model';
import { createOptimizerClient } from '../../optimizer-client';
import type { ImproveRequest } from './improve-state';

/** What an improvement needs besides its request. */
export interface ImproveRun {
  /** Id of the video model, whose tokenizer limits the length. */
  readonly model: string;
  /** Their trigger words stay. */
  readonly loras: readonly LoraFile[];
  readonly signal: AbortSignal;
  readonly onText: (soFar: string) => void;
  readonly onDownload: (share: number) => void;
}

/**
 * Improves one prompt. The worker ends with it, so that its memory is free for the video.
 *
 * @throws KinoraError of the optimizer or of the browser's own model; `CANCELLED` after an abort
 */
export async function runImprove(
  request: ImproveRequest,
  run: ImproveRun,
): Promise<PromptOptimization> {
  run.signal.throwIfAborted();
  const client = createOptimizerClient();
  const { api, crashed } = client.open();
  const cancel = () => void api.cancel().catch(() => {});
  run.signal.addEventListener('abort', cancel);
  try {
    const improve = request.source === 'library' ? withLibrary : withBrowser;
    const record = await Promise.race([improve(request, run, api), crashed]);
    const { isRefusedPrompt } = await import('../../../lib/contract/prompt-refusal');
    if (!isRefusedPrompt(record.text)) return record;
    const reasons = [...record.reasons, 'refused'];
    return { ...record, status: 'failed', text: request.prompt, reasons };
  } finally {
    run.signal.removeEventListener('abort', cancel);
    client.close();
  }
}

function withLibrary(
  { prompt, seed, limitMs }: ImproveRequest,
  { model, loras, onText }: ImproveRun,
  api: OptimizerApi,
): Promise<PromptOptimization> {
  return api.optimize({ prompt, model, loras, seed, timeLimitMs: limitMs }, onText);
}

/** The same protection and checks with the browser's own model, which only a page can ask. */
async function withBrowser(
  { prompt, seed, limitMs }: ImproveRequest,
  { model, loras, signal, onText, onDownload }: ImproveRun,
  api: OptimizerApi,
): Promise<PromptOptimization> {
  // The word lists are large, and most browsers have no model of their own.
  const { optimizePrompt, detectLanguage } = await import('../../../lib/prompts');
  const language = detectLanguage(prompt) ?? 'en';
  const own = await openBrowserModel({ language, signal, onDownload });
  try {
    return await optimizePrompt(prompt, {
      model: own,
      triggerWords: await api.triggerWords(loras),
      seed,
      countTokens: async (text) => (await api.measurePrompt(model, text)).tokens,
      timeLimitMs: limitMs,
      signal,
      onText,
    });
  } finally {
    await own.close();
  }
}
