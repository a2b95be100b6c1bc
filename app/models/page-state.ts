import {
  type AdapterChoices,
  type DownloadPlan,
  type ErrorRecord,
  type Precision,
  toKinoraError,
} from '../../lib/contract';

/** What a download would take, as far as it is known. */
export type PlanState =
  | { readonly status: 'asking' }
  | { readonly status: 'known'; readonly plan: DownloadPlan }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** What of a model is to be fetched. */
export interface DownloadScope {
  readonly precision: Precision;
  /** Which adapters; as in the library's `download`. */
  readonly adapters?: AdapterChoices | undefined;
}

/** The open sheet: a model, what is to be fetched of it, and what that takes. */
export interface Sheet extends DownloadScope {
  readonly model: string;
  readonly plan: PlanState;
}

/** What is to be deleted once the person agrees. */
export interface Removal {
  readonly kind: 'files' | 'download' | 'model' | 'lora';
  /** Id of the model, or name of the LoRA. */
  readonly id: string;
}

/** What came of something that was done: a sentence, or a line for each file. */
export type Said = string | readonly Added[];

/**
 * What the page itself knows: everything else is in the library's snapshot. A subject is a model's
 * id or one of {@link subjects}.
 */
export interface PageState {
  readonly sheet: Sheet | null;
  readonly removal: Removal | null;
  /** What is being done, by subject: `Looking at the files …`. */
  readonly doing: Readonly<Record<string, string>>;
  readonly problems: Readonly<Record<string, ErrorRecord>>;
  /** What has just been done, by subject. */
  readonly done: Readonly<Record<string, Said>>;
}

/** Subjects that are no model. No id of a model begins with a colon. */
export const subjects = {
  addModel: ':add-model',
  addLora: ':add-lora',
  addTool: ':add-tool',
  hub: ':hub',
} as const;

export type PageAction =
  | ({ readonly type: 'sheetOpened'; readonly model: string } & DownloadScope)
  | { readonly type: 'planned'; readonly sheet: Sheet; readonly plan: PlanState }
  | { readonly type: 'sheetClosed' }
  | { readonly type: 'removalAsked'; readonly removal: Removal }
  | { readonly type: 'removalAnswered' }
  | { readonly type: 'begun'; readonly subject: string; readonly what: string }
  | { readonly type: 'ended'; readonly subject: string; readonly said?: Said }
  | { readonly type: 'failed'; readonly subject: string; readonly error: ErrorRecord };

export const initialPage: PageState = {
  sheet: null,
  removal: null,
  doing: {},
  problems: {},
  done: {},
};

/** The page as one pure reducer. */
export function changePage(state: PageState, action: PageAction): PageState {
  switch (action.type) {
    case 'sheetOpened': {
      const { model, precision, adapters } = action;
      return { ...state, sheet: { model, precision, adapters, plan: { status: 'asking' } } };
    }
    case 'planned': {
      const { sheet } = state;
      // The answer to a question that is no longer asked.
      if (sheet?.model !== action.sheet.model) return state;
      if (sheet.precision !== action.sheet.precision) return state;
      if (sheet.adapters !== action.sheet.adapters) return state;
      return { ...state, sheet: { ...sheet, plan: action.plan } };
    }
    case 'sheetClosed':
      return { ...state, sheet: null };
    case 'removalAsked':
      return { ...state, removal: action.removal };
    case 'removalAnswered':
      return { ...state, removal: null };
    case 'begun': {
      const { subject, what } = action;
      return { ...cleared(state, subject), doing: { ...state.doing, [subject]: what } };
    }
    case 'ended': {
      const { subject, said } = action;
      const next = cleared(state, subject);
      return said === undefined ? next : { ...next, done: { ...next.done, [subject]: said } };
    }
    case 'failed': {
      const next = cleared(state, action.subject);
      return { ...next, problems: { ...next.problems, [action.subject]: action.error } };
    }
  }
}

function cleared(state: PageState, subject: string): PageState {
  const without = <T>(record: Readonly<Record<string, T>>): Record<string, T> => {
    const { [subject]: _, ...rest } = record;
    return rest;
  };
  return {
    ...state,
    doing: without(state.doing),
    problems: without(state.problems),
    done: without(state.done),
  };
}

/** What is typed as the hub's address, and the address in force meanwhile. */
export interface TypedAddress {
  readonly text: string;
  readonly hub: string;
}

/** What stands in the field: what was typed, also where it was refused, until another is in force. */
export function shownAddress(typed: TypedAddress | null, hub: string): string {
  return typed?.hub === hub ? typed.text : hub;
}

/** What came of adding one file: its name, and why it was refused. */
export interface Added {
  readonly name: string;
  readonly error?: ErrorRecord;
}

/**
 * Adds files one after another; one that is refused does not hold up the next.
 *
 * @param add adds one file and resolves with the name that it got
 * @throws KinoraError of a single one, where that says nothing of the file
 */
export async function addEach<T extends { readonly name: string }>(
  files: readonly T[],
  add: (file: T) => Promise<string>,
): Promise<Added[]> {
  const all: Added[] = [];
  for (const file of files) {
    try {
      all.push({ name: await add(file) });
    } catch (thrown) {
      const error = toKinoraError(thrown);
      if (files.length === 1 && !error.code.startsWith('LORA_')) throw error;
      all.push({ name: file.name, error: error.toRecord() });
    }
  }
  return all;
}
