import { type Dispatch, useEffect, useEffectEvent, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import { openLora } from '../../lib/library';
import { getLibrary } from '../library';
import { loadModels, pickModel } from '../shared/use-models';
import { type ChosenLora, type FormAction, type FormState, maxLoras } from './form-state';

/** Adds LoRAs to the form, each after a look at its header: one for another base model is refused. */
export function useLoraInput(
  { values, files: { loras } }: FormState,
  change: Dispatch<FormAction>,
) {
  async function add(file: File, name: string, own: File | null): Promise<void> {
    const triggerWords = (await inspect(file, values.model))?.triggerWords ?? [];
    const lora = { key: crypto.randomUUID(), name, file: own, scale: '1' };
    change({ type: 'loraAdded', lora: { ...lora, ...(own && { triggerWords }) } });
  }

  return {
    /**
     * Adds the files that fit, in their order.
     *
     * @throws KinoraError for those that do not; `PARAMETER_INVALID` if they are too many, and then none is added
     */
    async addFiles(files: readonly File[]): Promise<void> {
      requirePlace(loras.length, files.length);
      const refused: KinoraError[] = [];
      for (const file of files) {
        await add(file, file.name, file).catch((thrown) => refused.push(toKinoraError(thrown)));
      }
      if (refused[0]) throw together(refused[0], refused);
    },
    /** Adds one of the library. @throws KinoraError `LORA_MISSING`, `LORA_WRONG_BASE`, … */
    pick: async (name: string) => add(await openLora(name), name, null),
  };
}

/** All refusals as one error, with the code and the remedy of the first. */
function together(first: KinoraError, all: readonly KinoraError[]): KinoraError {
  if (all.length === 1) return first;
  const sentence = all.map(({ message }) => message).join(' ');
  return new KinoraError(first.code, sentence, { remedy: first.remedy });
}

function requirePlace(count: number, more: number): void {
  if (count + more <= maxLoras) return;
  throw new KinoraError('PARAMETER_INVALID', `A video can use at most ${maxLoras} LoRAs.`, {
    remedy: count === 0 ? 'Choose fewer files.' : 'Remove one first.',
  });
}

/**
 * What the header of a LoRA says for the selected model; null where that cannot be told here.
 *
 * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `FILE_UNREADABLE`
 */
async function inspect(file: File, selected: string) {
  const model = pickModel(await loadModels(), selected);
  if (!model) return null;
  return getLibrary().call((api) => api.inspectLora(model.manifest.id, file));
}

/**
 * Why chosen LoRAs do not fit the model, by their keys; checked again when the model or the list changes.
 *
 * @param model its id; null until it is known
 */
export function useLoraMisfits(
  loras: readonly ChosenLora[],
  model: string | null,
): Readonly<Record<string, ErrorRecord>> {
  const [found, setFound] = useState<Readonly<Record<string, ErrorRecord>>>({});
  const keys = loras.map(({ key }) => key).join();
  const misfits = useEffectEvent(async (id: string) => {
    const checked = loras.map(async ({ key, name, file }) => {
      try {
        const content = file ? new File([file], name) : await openLora(name);
        await getLibrary().call((api) => api.inspectLora(id, content));
        return [];
      } catch (thrown) {
        return [[key, toKinoraError(thrown).toRecord()] as const];
      }
    });
    return Object.fromEntries((await Promise.all(checked)).flat());
  });
  useEffect(() => {
    if (model === null || keys === '') return;
    let stale = false;
    void misfits(model).then((all) => {
      if (!stale) setFound(all);
    });
    return () => {
      stale = true;
    };
  }, [keys, model]);
  return found;
}
