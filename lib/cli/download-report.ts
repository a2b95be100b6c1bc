import {
  type ComponentId,
  componentName,
  formatBytes,
  formatPercent,
  formatSeconds,
  type LibraryEntry,
  type PartState,
  progressOf,
} from '../contract';
import type { Screen } from './screen';

/** Without a terminal a line is printed each time a part has grown by so many percent. */
const percentPerLine = 10;
const moving: readonly PartState['status'][] = ['downloading', 'verifying'];

/** Prints the progress of a download or a verification, from the states that the library reports. */
export class DownloadReport {
  /** The last line of each part. */
  readonly #said = new Map<string, string>();
  /** Parts that were once incomplete. Parts that were complete from the start are not reported. */
  readonly #unfinished = new Set<ComponentId>();

  constructor(readonly screen: Screen) {}

  take(entry: LibraryEntry): void {
    for (const part of entry.parts) this.#onPart(part, entry);
    if (this.screen.isTTY && entry.parts.some(({ status }) => moving.includes(status))) {
      this.#bar(entry);
    }
  }

  #onPart(part: PartState, entry: LibraryEntry): void {
    const name = componentName(part.component, entry.manifest);
    const notice = noticeOf(part);
    if (notice) this.#sayOnce(`${part.component} notice`, `${name}: ${notice}`);
    const line = this.#lineOf(part, name, entry.bytesPerSecond);
    if (line) this.#sayOnce(part.component, ...line);
  }

  /** @param key a line with the key of the last one is not printed; the line itself when absent */
  #sayOnce(subject: string, line: string, key: string = line): void {
    if (this.#said.get(subject) === key) return;
    this.#said.set(subject, key);
    this.screen.line(line);
  }

  #lineOf(
    part: PartState,
    title: string,
    bytesPerSecond: number,
  ): [line: string, key: string] | null {
    const name = `  ${title.padEnd(14)}`;
    const { component, status, bytesDone, bytesTotal } = part;
    if (status !== 'complete') this.#unfinished.add(component);
    else {
      return this.#unfinished.has(component)
        ? [`${name} ${formatBytes(bytesDone)}, complete`, 'complete']
        : null;
    }
    if (!moving.includes(status) || !bytesTotal) return null;
    const verb = status === 'verifying' ? 'checking' : 'fetching';
    const tenth = Math.floor((100 * bytesDone) / bytesTotal / percentPerLine);
    // In a terminal the bar shows the numbers.
    const key = this.screen.isTTY ? verb : `${verb} ${tenth}`;
    const done = `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`;
    const share = formatPercent(bytesDone / bytesTotal);
    const pace = bytesPerSecond > 0 ? `, ${formatBytes(bytesPerSecond)}/s` : '';
    return [`${name} ${verb}, ${done} (${share})${pace}`, key];
  }

  #bar({ parts, bytesPerSecond }: LibraryEntry): void {
    const { bytesDone: done, bytesTotal: total } = progressOf(parts);
    if (!total) return;
    const counts = `${formatBytes(done)} of ${formatBytes(total)}`;
    this.screen.bar(done / total, `${counts}${paceOf(total - done, bytesPerSecond)}`);
  }
}

function paceOf(bytesLeft: number, bytesPerSecond: number): string {
  if (bytesPerSecond <= 0) return '';
  const left = formatSeconds(bytesLeft / bytesPerSecond);
  return `, ${formatBytes(bytesPerSecond)}/s, about ${left} left`;
}

/** A notice beside the numbers. */
function noticeOf({ status, pausedBy, notice, error }: PartState): string | undefined {
  if (status === 'failed' && error) return `${error.message} ${error.remedy}`;
  if (status === 'paused' && pausedBy === 'network') {
    return `waiting for the hub. ${error?.message ?? ''}`.trimEnd();
  }
  return notice;
}
