import type { LoraFile } from '../../../lib/contract/engine';
import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
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
}

/**
 * Improves one prompt. The worker ends with it, so that its memory is free for the video.
 *
 * @throws KinoraError of the optimizer; `CANCELLED` after an abort
 */
export async function runImprove(
  { prompt, seed, limitMs: timeLimitMs }: ImproveRequest,
  { model, loras, signal, onText }: ImproveRun,
): Promise<PromptOptimization> {
  signal.throwIfAborted();
  const client = createOptimizerClient();
  const { api, crashed } = client.open();
  // The worker may have ended.
  const cancel = () => void api.cancel().catch(() => {});
  signal.addEventListener('abort', cancel);
  try {
    const improving = api.optimize({ prompt, model, loras, seed, timeLimitMs }, onText);
    const record = await Promise.race([improving, crashed]);
    const { isRefusedPrompt } = await import('../../../lib/contract/prompt-refusal');
    if (!isRefusedPrompt(record.text)) return record;
    const reasons = [...record.reasons, 'refused'];
    return { ...record, status: 'failed', text: prompt, reasons };
  } finally {
    signal.removeEventListener('abort', cancel);
    client.close();
  }
}
