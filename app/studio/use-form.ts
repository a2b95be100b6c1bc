import { type Dispatch, useEffect, useReducer, useRef, useState } from 'react';
import type { Draft } from '../../lib/predictions/database';
import { loadDraft, saveDraft } from '../../lib/predictions/database';
import { getRunner } from '../runner';
import {
  changeForm,
  emptyForm,
  type FormAction,
  type FormFiles,
  type FormState,
  type FormValues,
} from './form-state';

/**
 * The form and its draft. `ready` turns true once the draft of the last visit is in place; until
 * then nothing is saved, so that an empty form never overwrites it.
 */
export function useForm(): { form: FormState; change: Dispatch<FormAction>; ready: boolean } {
  const [form, change] = useReducer(changeForm, emptyForm);
  const [ready, setReady] = useState(false);

  useEffect(() => {
    let current = true;
    void restore().then((draft) => {
      if (!current) return;
      change({ type: 'restored', ...draft });
      setReady(true);
    });
    return () => {
      current = false;
    };
  }, []);

  useSaved('values', form.values, ready);
  useSaved('files', form.files, ready);
  return { form, change, ready };
}

async function restore(): Promise<{ values?: FormValues; files?: FormFiles }> {
  try {
    const { database } = getRunner().store;
    const values = (await loadDraft(database, 'values')) as Partial<FormValues> | undefined;
    const files = (await loadDraft(database, 'files')) as FormFiles | undefined;
    return {
      ...(values && { values: { ...emptyForm.values, ...values } }),
      ...(files && { files }),
    };
  } catch {
    return {}; // without a database there is no draft; generating will say what is wrong
  }
}

/** Saves a part of the form whenever it changes; not the value it starts with. */
function useSaved(id: Draft['id'], content: unknown, ready: boolean): void {
  const saved = useRef<unknown>(null);
  useEffect(() => {
    if (!ready) return;
    const isFirst = saved.current === null;
    const changed = saved.current !== content;
    saved.current = content;
    if (isFirst || !changed) return;
    // A draft that cannot be saved is no reason to disturb anyone.
    saveDraft(getRunner().store.database, id, content).catch(() => {});
  }, [id, content, ready]);
}
