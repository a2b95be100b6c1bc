import {
  type Dispatch,
  useCallback,
  useEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from 'react';
import { type Draft, loadDraft, saveDraft } from '../../../lib/predictions/database';
import { getRunner } from '../../runner';
import { changeDevice, useDevice } from '../../shared/device';
import {
  changeForm,
  emptyForm,
  type FormAction,
  type FormFiles,
  type FormState,
  type FormValues,
  fromDraft,
} from './form-state';

/**
 * The form and its draft; backend and memory limit are a setting of this browser. `ready` becomes true when
 * the last draft is restored; until then nothing is saved, so that the empty form does not overwrite the
 * draft.
 */
export function useForm(): { form: FormState; change: Dispatch<FormAction>; ready: boolean } {
  const [state, dispatch] = useReducer(changeForm, emptyForm);
  const device = useDevice();
  const form = useMemo(() => {
    return { ...state, values: { ...state.values, ...device } };
  }, [state, device]);
  const change = useCallback((action: FormAction) => {
    if (action.type === 'changed') changeDevice(action.values);
    dispatch(action);
  }, []);
  const [ready, setReady] = useState(false);

  useEffect(() => {
    let current = true;
    void restore().then((draft) => {
      if (!current) return;
      dispatch({ type: 'restored', ...draft });
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
    return { ...(values && { values: fromDraft(values) }), ...(files && { files }) };
  } catch {
    return {}; // The database failed: there is no draft, and Generate will report the error.
  }
}

/**
 * Saves a part of the form whenever it changes, but not its first value. While an image is dragged in its frame
 * it changes faster than it is saved: then only the latest is.
 */
function useSaved(id: Draft['id'], content: unknown, ready: boolean): void {
  const latest = useRef<unknown>(null);
  const saving = useRef(false);
  useEffect(() => {
    if (!ready) return;
    const changed = latest.current !== null && latest.current !== content;
    latest.current = content;
    if (!changed || saving.current) return;
    const save = async () => {
      saving.current = true;
      let saved: unknown;
      while (saved !== latest.current) {
        saved = latest.current;
        await saveDraft(getRunner().store.database, id, saved);
      }
    };
    // A draft that cannot be saved does not affect the form, so the user is not interrupted.
    save()
      .catch(() => {})
      .finally(() => {
        saving.current = false;
      });
  }, [id, content, ready]);
}
