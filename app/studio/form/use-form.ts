import {
  type Dispatch,
  useEffect,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from 'react';
import type { Draft } from '../../../lib/predictions/database';
import { changeDevice, useDevice } from '../../shared/device';
import { expectImage, noteImage } from '../../shared/expected-image';
import { type GpuState, shownBackend } from '../../shared/gpu';
import { useStable } from '../../shared/use-stable';
import { loadData } from '../use-data';
import {
  changeForm,
  emptyForm,
  type FormAction,
  type FormFiles,
  type FormState,
  type FormValues,
  filesFromDraft,
  fromDraft,
  type Replaced,
} from './form-state';

/**
 * The form and its draft; backend and memory limit are a setting of this browser, and the backend, where none was
 * chosen, follows the GPU. `ready` becomes true when
 * the last draft is restored; until then nothing is saved, so that the empty form does not overwrite the
 * draft. What was changed before that is changed in the draft too.
 */
export function useForm(gpu: GpuState): {
  form: FormState;
  change: Dispatch<FormAction>;
  ready: boolean;
} {
  const [state, dispatch] = useReducer(changeForm, emptyForm);
  const device = useDevice();
  const backend = shownBackend(device, gpu);
  const form = useMemo(() => {
    return { ...state, values: { ...state.values, ...device, backend } };
  }, [state, device, backend]);
  /** The changes until the draft is restored; null from then on. */
  const early = useRef<FormAction[] | null>([]);
  const { change } = useStable({
    change(action: FormAction) {
      const actions = [action];
      if (action.type === 'replaced') {
        // A card that Undo restores has the present setting.
        actions.unshift({ type: 'changed', values: { ...device, backend } });
      }
      if ('values' in action && action.type !== 'restored') {
        // The settings of an earlier video choose nothing where that computes anyway.
        const { backend: newBackend, ...others } = action.values ?? {};
        const chosen = newBackend !== undefined && newBackend !== backend;
        changeDevice(chosen ? { ...others, backend: newBackend } : others);
      }
      early.current?.push(...actions);
      for (const one of actions) dispatch(one);
    },
  });
  const [draft, setDraft] = useState<'unread' | 'restored' | 'changed'>('unread');

  useEffect(() => {
    let current = true;
    void restore().then((draft) => {
      if (!current) return;
      const actions = early.current ?? [];
      early.current = null;
      dispatch({ type: 'restored', replaced: [], ...draft });
      for (const action of actions) dispatch(action);
      setDraft(actions.length > 0 ? 'changed' : 'restored');
    });
    return () => {
      current = false;
    };
  }, []);

  const restored = draft !== 'unread';
  const expected = form.files.image && form.values.size;
  useLayoutEffect(() => {
    if (!restored) return;
    expectImage(null);
    noteImage(expected);
  }, [restored, expected]);
  useSaved('values', form.values, draft);
  useSaved('files', form.files, draft);
  useSaved('replaced', form.replaced, draft);
  return { form, change, ready: restored };
}

async function restore(): Promise<{
  values?: FormValues;
  files?: FormFiles;
  replaced?: readonly Replaced[];
}> {
  try {
    const { getRunner, loadDraft } = await loadData();
    const { database } = getRunner().store;
    const values = (await loadDraft(database, 'values')) as Partial<FormValues> | undefined;
    const files = (await loadDraft(database, 'files')) as Partial<FormFiles> | undefined;
    const stored = (await loadDraft(database, 'replaced')) as readonly Replaced[] | undefined;
    const replaced = stored?.map((one) => {
      return { ...one, values: fromDraft(one.values), files: filesFromDraft(one.files) };
    });
    return {
      ...(values && { values: fromDraft(values) }),
      ...(files && { files: filesFromDraft(files) }),
      ...(replaced && { replaced }),
    };
  } catch {
    return {}; // The database failed: there is no draft, and Generate will report the error.
  }
}

/**
 * Saves a part of the form whenever it changes, but not as it was restored. While an image is dragged in its frame
 * it changes faster than it is saved: then only the latest is.
 */
function useSaved(
  id: Draft['id'],
  content: unknown,
  draft: 'unread' | 'restored' | 'changed',
): void {
  const latest = useRef<unknown>(null);
  const saving = useRef(false);
  useEffect(() => {
    if (draft === 'unread') return;
    const changed = latest.current === null ? draft === 'changed' : latest.current !== content;
    latest.current = content;
    if (!changed || saving.current) return;
    const save = async () => {
      saving.current = true;
      const { getRunner, saveDraft } = await loadData();
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
  }, [id, content, draft]);
}
