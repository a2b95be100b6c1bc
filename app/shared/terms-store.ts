import { useEffect, useSyncExternalStore } from 'react';
import {
  type ErrorRecord,
  KinoraError,
  Observable,
  type TermsAcceptance,
  toKinoraError,
} from '../../lib/contract';

/** What this page knows of the terms of use. */
export interface TermsState {
  /** Null: not accepted, or only an earlier version; undefined: not read yet. */
  readonly acceptance: TermsAcceptance | null | undefined;
  /** Whether the dialog is open. */
  readonly asking: boolean;
  /** Why the acceptance could not be stored. */
  readonly error: ErrorRecord | null;
}

const terms = new Observable<TermsState>({ acceptance: undefined, asking: false, error: null });
/** What waits for the answer to the open dialog. */
let waiting: ((accepted: boolean) => void)[] = [];

function set(changes: Partial<TermsState>): void {
  terms.set({ ...terms.getSnapshot(), ...changes });
}

/** Loaded on first use: pages that only show a link do not need the library. */
const library = () => import('../../lib/library');

async function read(): Promise<TermsAcceptance | null> {
  const acceptance = await (await library()).readAcceptance();
  set({ acceptance });
  return acceptance;
}

/**
 * Whether the present terms are accepted on this device; where they are not, opens the dialog and waits
 * for the answer.
 */
export async function askTerms(): Promise<boolean> {
  if (await read()) return true;
  set({ asking: true, error: null });
  return new Promise((resolve) => waiting.push(resolve));
}

/**
 * Runs work that needs the terms: where it rejects because they are not accepted, asks, and runs it again.
 *
 * @throws KinoraError `CANCELLED` where they were not accepted; whatever `work` rejects with
 */
export async function withTerms<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (toKinoraError(thrown).code !== 'TERMS_NOT_ACCEPTED') throw thrown;
    if (!(await askTerms())) throw new KinoraError('CANCELLED', undefined, { cause: thrown });
    return work();
  }
}

/** Stores the acceptance on this device. */
export async function accept(): Promise<void> {
  try {
    const acceptance = await (await library()).acceptTerms();
    set({ acceptance, asking: false, error: null });
    answer(true);
  } catch (thrown) {
    set({ error: toKinoraError(thrown).toRecord() });
  }
}

/** Closes the dialog without accepting. */
export function decline(): void {
  set({ asking: false, error: null });
  answer(false);
}

function answer(accepted: boolean): void {
  const resolvers = waiting;
  waiting = [];
  for (const resolve of resolvers) resolve(accepted);
}

/** The state of the terms. @param known reads the acceptance first */
export function useTerms({ known = false } = {}): TermsState {
  const current = useSyncExternalStore(terms.subscribe, terms.getSnapshot, terms.getServerSnapshot);
  useEffect(() => {
    if (known) read().catch((thrown) => set({ error: toKinoraError(thrown).toRecord() }));
  }, [known]);
  return current;
}
