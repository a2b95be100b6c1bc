import { type Dispatch, useEffect, useEffectEvent, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../../lib/contract/errors';
import { getLibrary } from '../../library';
import { loadModels, pickModel } from '../../shared/use-models';
import { type ChosenLora, type FormAction, type FormState, maxLoras } from './form-state';

/** Adds LoRAs to the form, each after a look at its header: one for another base model is refused. */
export function useLoraInput(
  { values, files: { loras } }: FormState,
  change: Dispatch<FormAction>,
) {
  async function add(file: File, name: string, own: File | null): Promise<void> {
    const model = pickModel(await loadModels(), values.model);
    if (model) await inspect(model.manifest.id, file);
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
      requirePlace(loras.length, files.length);
      const refused: KinoraError[] = [];
      for (const file of files) {
        await add(file, file.name, file).catch((thrown) => refused.push(toKinoraError(thrown)));
      }
      if (refused[0]) throw together(refused[0], refused);
    },
    /** Adds one of the library. @throws KinoraError `LORA_MISSING`, `LORA_WRONG_BASE`, … */
    pick: async (name: string) => add(await openFromLibrary(name), name, null),
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

function requirePlace(count: number, more: number): void {
  if (count + more <= maxLoras) return;
  throw new KinoraError('PARAMETER_INVALID', `A video can use at most ${maxLoras} LoRAs.`, {
    remedy: count === 0 ? 'Choose fewer files.' : 'Remove one first.',
  });
}

/** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `FILE_UNREADABLE` */
function inspect(model: string, file: File) {
  return getLibrary().call((api) => api.inspectLora(model, file));
}

/** What the header of a chosen LoRA says. */
export interface LoraCheck {
  /** Why it does not fit the model; null where it does. */
  readonly misfit: ErrorRecord | null;
  readonly triggerWords: readonly string[];
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
  try {
    const facts = await inspect(model, file ? new File([file], name) : await openFromLibrary(name));
    return [key, { misfit: null, triggerWords: facts?.triggerWords ?? [] }];
  } catch (thrown) {
    return [key, { misfit: toKinoraError(thrown).toRecord(), triggerWords: [] }];
  }
}
