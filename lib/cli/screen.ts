/** Output of progress: a terminal that can redraw a line, or plain lines. */
export interface Output {
  readonly isTTY?: boolean;
  /** Width in characters; 0 where the terminal does not tell. */
  readonly columns?: number;
  write(text: string): unknown;
}

const barWidth = 24;

/** Plain lines, and below them one bar that is redrawn in place. */
export class Screen {
  #open = false;

  constructor(readonly output: Output) {}

  get isTTY(): boolean {
    return this.output.isTTY === true;
  }

  /** One plain line, above the bar. */
  line(text: string): void {
    this.end();
    this.output.write(`${text}\n`);
  }

  /** Draws the bar anew. @param share 0 … 1 */
  bar(share: number, text: string): void {
    const filled = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const line = `  ${bar} ${text}`;
    this.output.write(`\r\u001b[K${line.slice(0, (this.output.columns || 80) - 1)}`);
    this.#open = true;
  }

  /** Ends an open bar, so that what follows starts on a line of its own. */
  end(): void {
    if (this.#open) this.output.write('\n');
    this.#open = false;
  }
}
