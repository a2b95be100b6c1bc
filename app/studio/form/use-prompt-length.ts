import { useEffect, useState } from 'react';
import type { OptimizerApi, PromptLength } from '../../../lib/contract';
import type { WorkerClient } from '../../../lib/predictions/worker-client';
import { createOptimizerClient } from '../../optimizer-client';

/** Milliseconds without a key before the prompt is measured. */
const typingMs = 400;
/** Milliseconds without a measurement after which the worker, with its tokenizer, ends. */
const idleMs = 30_000;

/** The worker that has the tokenizer; null where none runs. */
let client: WorkerClient<OptimizerApi> | null = null;
let idle: ReturnType<typeof setTimeout> | undefined;

async function measure(model: string, text: string): Promise<PromptLength> {
  clearTimeout(idle);
  client ??= createOptimizerClient();
  const { api, crashed } = client.open();
  try {
    return await Promise.race([api.measurePrompt(model, text), crashed]);
  } finally {
    clearTimeout(idle);
    idle = setTimeout(() => {
      client?.close();
      client = null;
    }, idleMs);
  }
}

/** A prompt that was measured. */
export interface MeasuredPrompt extends PromptLength {
  readonly text: string;
}

/**
 * The length of a prompt in tokens of a model, measured in a worker when typing pauses.
 *
 * @param model id of a model that is in this browser; null measures nothing
 * @returns null until it is measured, and where that fails: the run then says why
 */
export function usePromptLength(text: string, model: string | null): MeasuredPrompt | null {
  const [measured, setMeasured] = useState<MeasuredPrompt | null>(null);
  const isEmpty = text.trim() === '';
  useEffect(() => {
    if (model === null || isEmpty) return;
    let stale = false;
    const timer = setTimeout(() => {
      measure(model, text).then(
        (length) => stale || setMeasured({ ...length, text }),
        () => stale || setMeasured(null),
      );
    }, typingMs);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [text, isEmpty, model]);
  return isEmpty || model === null ? null : measured;
}
