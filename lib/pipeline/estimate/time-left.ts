/** What is said of the time left. */
export interface TimeLeft {
  readonly secondsRemaining: number;
  readonly reason: string | null;
}

/** It may rise by so much without a reason, over the lowest that was said. */
const mostRise = 1.2;
/** A rise of fewer seconds is not worth a reason: it is limited instead. */
const smallRise = 2;
/** Seconds for which a reason is shown, unless the time left is back before. */
const reasonSeconds = 30;

/** Says the time left so that it never rises by more than 20 % without a reason. */
export class TimeLeftTeller {
  #low: number | null = null;
  #reason: { readonly text: string; readonly at: number; readonly until: number } | null = null;

  /**
   * @param seconds the estimate
   * @param now in seconds
   * @param cause why it would rise now
   */
  say(seconds: number, now: number, cause: () => string): TimeLeft {
    const low = this.#low ?? seconds;
    const most = low * mostRise;
    let said = seconds;
    if (seconds > most && seconds - low < smallRise) said = most;
    else if (seconds > most) {
      this.#reason = { text: cause(), at: now, until: low };
      this.#low = seconds;
    }
    this.#low = Math.min(this.#low ?? said, said);
    const reason = this.#reason;
    if (reason && (now - reason.at > reasonSeconds || said <= reason.until)) this.#reason = null;
    return { secondsRemaining: said, reason: this.#reason?.text ?? null };
  }
}
