import type { OpenOptions, TextRequest } from '../wllama-model';

/** Options for the tiny models, whose folder of assets is that of this origin. */
export function tinyOptions(options: Partial<OpenOptions> = {}): OpenOptions {
  return {
    name: 'tiny',
    sha256: '0'.repeat(64),
    assets: new URL('/wllama/', self.location.origin),
    signal: new AbortController().signal,
    ...options,
  };
}

/** The messages of the goldens, 40 tokens. */
export function requestFor(request: Partial<TextRequest> = {}): TextRequest {
  return {
    system: 'Rewrite.',
    user: 'a cat walks [trigger_word]',
    seed: 7,
    maxTokens: 40,
    signal: new AbortController().signal,
    ...request,
  };
}
