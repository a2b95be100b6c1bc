import { type Dispatch, useEffect, useEffectEvent, useState } from 'react';
import { type ErrorRecord, KinoraError, toKinoraError } from '../../lib/contract/errors';
import type { Parameters } from '../../lib/contract/request';
import { getLibrary } from '../library';
import type { ChosenLora, FormAction, FormState } from './form-state';
import { maxLoras } from './form-state';
import { readImage } from './read-image';
import { readSettings } from './read-settings';

/** What came of the files that were last given. */
export type IntakeNotice =
  | { readonly kind: 'error'; readonly error: ErrorRecord }
  | { readonly kind: 'info'; readonly text: string };

export interface Intake {
  readonly take: (files: readonly File[]) => Promise<void>;
  /** Shows what went wrong with something that should have entered the form. */
  readonly fail: (error: KinoraError) => void;
  readonly notice: IntakeNotice | null;
  readonly dragging: boolean;
}

/**
 * Takes files however they come: dropped anywhere on the page, pasted, or chosen. Images become the
 * start image, `.safetensors` a LoRA, and an MP4 made by Kinora restores its settings.
 */
export function useIntake(form: FormState, change: Dispatch<FormAction>): Intake {
  const [notice, setNotice] = useState<IntakeNotice | null>(null);
  const [dragging, setDragging] = useState(false);
  const loraCount = form.files.loras.length;

  async function take(files: readonly File[]): Promise<void> {
    setNotice(null);
    try {
      let loras = loraCount;
      for (const file of files) {
        if (isLora(file)) {
          loras += 1;
          addLora(file, loras);
        } else if (isVideo(file)) {
          await takeSettings(file);
        } else {
          change({ type: 'imageSet', image: await readImage(file, file.name) });
        }
      }
    } catch (thrown) {
      setNotice({ kind: 'error', error: toKinoraError(thrown).toRecord() });
    }
  }

  function addLora(file: File, count: number): void {
    if (count > maxLoras) {
      throw new KinoraError('PARAMETER_INVALID', `At most ${maxLoras} LoRAs work at once.`, {
        remedy: 'Remove one first.',
      });
    }
    const key = crypto.randomUUID();
    change({ type: 'loraAdded', lora: { key, name: file.name, file, scale: '1' } });
  }

  async function takeSettings(file: File): Promise<void> {
    const { values, loras } = await readSettings(file);
    change({ type: 'changed', values });
    const library = getLibrary().getSnapshot();
    const kept = library.status === 'ready' ? library.snapshot.loras.map(({ name }) => name) : [];
    const found = loras.filter(({ path }) => kept.includes(path));
    const missing = loras.filter(({ path }) => !kept.includes(path)).map(({ path }) => path);
    if (found.length > 0) change({ type: 'lorasSet', loras: found.map(fromLibrary) });
    const more = missing.length > 0 ? ` Add these LoRAs again: ${missing.join(', ')}.` : '';
    setNotice({ kind: 'info', text: `Settings restored from ${file.name}.${more}` });
  }

  const onFiles = useEffectEvent((event: Event, transfer: DataTransfer | null) => {
    const files = [...(transfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void take(files);
  });

  useEffect(() => {
    let depth = 0; // every child enters and leaves for itself
    const update = (value: number) => {
      depth = Math.max(0, value);
      setDragging(depth > 0);
    };
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const enter = (event: DragEvent) => hasFiles(event) && update(depth + 1);
    const leave = (event: DragEvent) => hasFiles(event) && update(depth - 1);
    const over = (event: DragEvent) => hasFiles(event) && event.preventDefault();
    const drop = (event: DragEvent) => {
      update(0);
      onFiles(event, event.dataTransfer);
    };
    const paste = (event: ClipboardEvent) => onFiles(event, event.clipboardData);
    const abort = new AbortController();
    const { signal } = abort;
    window.addEventListener('dragenter', enter, { signal });
    window.addEventListener('dragleave', leave, { signal });
    window.addEventListener('dragover', over, { signal });
    window.addEventListener('drop', drop, { signal });
    window.addEventListener('paste', paste, { signal });
    return () => abort.abort();
  }, []);

  const fail = (error: KinoraError) => setNotice({ kind: 'error', error: error.toRecord() });
  return { take, fail, notice, dragging };
}

function fromLibrary({ path, scale }: Parameters['loras'][number]): ChosenLora {
  return { key: crypto.randomUUID(), name: path, file: null, scale: String(scale) };
}

function isLora(file: File): boolean {
  return file.name.toLowerCase().endsWith('.safetensors');
}

function isVideo(file: File): boolean {
  return file.type.startsWith('video/') || file.name.toLowerCase().endsWith('.mp4');
}
