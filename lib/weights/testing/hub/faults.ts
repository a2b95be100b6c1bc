/** What can go wrong with one answer. */
export type Fault =
  /** The connection ends after some bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes: number }
  /** The connection ends before any answer: at once, or when this has come. */
  | { readonly kind: 'reset'; readonly when?: Promise<unknown> }
  /** The body has fewer bytes than were asked for, and its headers agree with the body. */
  | { readonly kind: 'short'; readonly bytes: number }
  /** 200 with the whole file, whatever was asked for. */
  | { readonly kind: 'whole' }
  /** The range that is announced and sent lies some bytes further on. */
  | { readonly kind: 'shifted'; readonly by: number }
  /** Only a status, such as 416, 429, 503, 404, 401, 403. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The body stops after some bytes, and the connection stays open. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** The body stops after some bytes, and comes on by a drop a second until the hub is healed. */
  | { readonly kind: 'held'; readonly afterBytes: number }
  /** The body comes in small pieces with a pause before each. */
  | { readonly kind: 'slow'; readonly pieceBytes: number; readonly pauseMs: number }
  /** A redirect to an address of the storage whose signature has expired: it answers 403. */
  | { readonly kind: 'expired' }
  /** A redirect to the same address, for ever. */
  | { readonly kind: 'loop' };

/** A fault and the requests that it befalls. */
export interface FaultRule {
  readonly fault: Fault;
  /** End of the requested path; each request when absent. */
  readonly path?: string;
  /** Which of the two servers: the hub itself, or the storage it redirects to. */
  readonly host?: 'hub' | 'storage';
  /** Only requests for a range that begins at this byte or later. */
  readonly fromByte?: number;
  /** How many matching requests pass unharmed before it strikes; 0 when absent. */
  readonly skip?: number;
  /** How many requests it strikes; 1 when absent. */
  readonly times?: number;
  /** Called as it strikes: what else happens at that moment. */
  readonly onStrike?: () => void;
}

/** One request as the rules see it. */
export interface SeenRequest {
  readonly host: 'hub' | 'storage';
  readonly path: string;
  /** First byte of the requested range; 0 without one. */
  readonly start: number;
}

/** The rules in force, in the order in which they were given. */
export class FaultScript {
  #rules: { rule: FaultRule; skip: number; times: number }[] = [];
  #healed = new AbortController();

  /** Aborted when the faults of now have ended. */
  get healed(): AbortSignal {
    return this.#healed.signal;
  }

  add(rule: FaultRule): void {
    this.#rules.push({ rule, skip: rule.skip ?? 0, times: rule.times ?? 1 });
  }

  clear(): void {
    this.#rules = [];
    this.#healed.abort();
    this.#healed = new AbortController();
  }

  /** The fault that befalls this request, if any; counts it. */
  next(request: SeenRequest): Fault | undefined {
    for (const entry of this.#rules) {
      const { rule } = entry;
      if (entry.times === 0) continue;
      if (rule.host !== undefined && rule.host !== request.host) continue;
      if (rule.path !== undefined && !request.path.endsWith(rule.path)) continue;
      if (rule.fromByte !== undefined && request.start < rule.fromByte) continue;
      if (entry.skip > 0) {
        entry.skip--;
        continue;
      }
      entry.times--;
      rule.onStrike?.();
      return rule.fault;
    }
    return undefined;
  }
}
