import { type Dispatch, useEffect, useEffectEvent, useState } from 'react';
import {
  type ErrorRecord,
  groupPairs,
  KinoraError,
  maxLoras,
  toKinoraError,
} from '../../../lib/contract';
import { getLibrary } from '../../library';
import { loadModels, pickModel } from '../../shared/use-models';
import { type ChosenLora, type FormAction, type FormState, rowsOfLoras } from './form-state';

/** Adds LoRAs to the form, each after a look at its header: one that fits no model of the list is refused. */
export function useLoraInput(
  { values, files: { loras } }: FormState,
  change: Dispatch<FormAction>,
) {
  async function add(file: File, name: string, own: File | null): Promise<void> {
    const models = await loadModels();
    const model = pickModel(models, values.model);
    try {
      if (model) await inspect(model.manifest.id, file);
    } catch (thrown) {
      // It stays where another model takes it: the field offers that one.
      const fitting = await modelsOf(file);
      if (!models.some(({ manifest }) => fitting.includes(manifest.id))) throw thrown;
    }
    change({
      type: 'loraAdded',
      lora: { key: crypto.randomUUID(), name, file: own, scale: '1' },
    });
  }

  return {
    /**
     * Adds the files that fit, in their order.
     *
     * @throws KinoraError for those that do not; `PARAMETER_INVALID` if they are too many, and then none is added
     */
    async addFiles(files: readonly File[]): Promise<void> {
      requirePlace(loras, files);
      const refused: KinoraError[] = [];
      for (const file of files) {
        await add(file, file.name, file).catch((thrown) => refused.push(toKinoraError(thrown)));
      }
      if (refused[0]) throw together(refused[0], refused);
    },
    /** Adds one of the library, with the other file of a pair. @throws KinoraError `LORA_MISSING`, `LORA_WRONG_BASE`, … */
    async pick(name: string): Promise<void> {
      const library = getLibrary().getSnapshot();
      const names = library.status === 'ready' ? library.snapshot.loras.map((one) => one.name) : [];
      const files = groupPairs(names, String).find((group) => group.some((one) => one === name));
      for (const one of files ?? [name]) await add(await openFromLibrary(one), one, null);
    },
  };
}

/** @throws KinoraError `LORA_MISSING` */
async function openFromLibrary(name: string): Promise<File> {
  // The library's own code is large, and works in its worker otherwise.
  const { openLora } = await import('../../../lib/library');
  return openLora(name);
}

/** All refusals as one error, with the code and the remedy of the first. */
function together(first: KinoraError, all: readonly KinoraError[]): KinoraError {
  if (all.length === 1) return first;
  const sentence = all.map(({ message }) => message).join(' ');
  return new KinoraError(first.code, sentence, { remedy: first.remedy });
}

function requirePlace(loras: readonly ChosenLora[], files: readonly File[]): void {
  const more = files.map((file) => ({ key: '', name: file.name, file, scale: '1' }));
  if (rowsOfLoras([...loras, ...more]).length <= maxLoras) return;
  throw new KinoraError('PARAMETER_INVALID', `A video can use at most ${maxLoras} LoRAs.`, {
    remedy: loras.length === 0 ? 'Choose fewer files.' : 'Remove one first.',
  });
}

/** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `FILE_UNREADABLE` */
function inspect(model: string, file: File) {
  return getLibrary().call((api) => api.inspectLora(model, file));
}

/** The models that it fits, by their ids; none for a file that is no LoRA. */
function modelsOf(file: File): Promise<readonly string[]> {
  return getLibrary()
    .call((api) => api.modelsOfLora(file))
    .catch(() => []);
}

/** What the header of a chosen LoRA says. */
export interface LoraCheck {
  /** Why it does not fit the model; null where it does. */
  readonly misfit: ErrorRecord | null;
  /** Where it does not: the models that it fits, by their ids. */
  readonly fitting: readonly string[];
  readonly triggerWords: readonly string[];
  /** How many of its tensors have no effect. */
  readonly unused: number;
}

/**
 * The headers of the chosen LoRAs, by their keys, read again when the model or the list changes.
 *
 * @param model its id; null until it is known
 */
export function useLoraChecks(
  loras: readonly ChosenLora[],
  model: string | null,
): Readonly<Record<string, LoraCheck>> {
  const [checks, setChecks] = useState<Readonly<Record<string, LoraCheck>>>({});
  const keys = loras.map(({ key }) => key).join();
  const checkAll = useEffectEvent((id: string) =>
    Promise.all(loras.map((lora) => check(lora, id))),
  );
  useEffect(() => {
    if (model === null || keys === '') return;
    let stale = false;
    void checkAll(model).then((entries) => {
      if (!stale) setChecks(Object.fromEntries(entries));
    });
    return () => {
      stale = true;
    };
  }, [keys, model]);
  return checks;
}

async function check(
  { key, name, file }: ChosenLora,
  model: string,
): Promise<readonly [key: string, check: LoraCheck]> {
  let opened: File | undefined;
  try {
    opened = file ? new File([file], name) : await openFromLibrary(name);
    const facts = await inspect(model, opened);
    const { triggerWords = [], unused = 0 } = facts ?? {};
    return [key, { misfit: null, fitting: [], triggerWords, unused }];
  } catch (thrown) {
    const misfit = toKinoraError(thrown).toRecord();
    const fitting = opened ? await modelsOf(opened) : [];
    return [key, { misfit, fitting, triggerWords: [], unused: 0 }];
  }
}
