import { type Dispatch, useEffect, useEffectEvent, useState } from 'react';
import {
  type ErrorRecord,
  type KinoraError,
  ofLastImage,
  toKinoraError,
} from '../../../lib/contract';
import { useStable, useSteady } from '../../shared/use-stable';
import { readImage } from './files';
import type { ChosenImage, FormAction, FormState, ImageName } from './form-state';
import { useLoraInput } from './use-loras';

/** The outcome of the last files. */
export type FileNotice =
  | { readonly kind: 'error'; readonly error: ErrorRecord }
  | { readonly kind: 'info'; readonly text: string }
  /** Several images came at once: the first one is in the form, each can become a video. */
  | { readonly kind: 'images'; readonly images: readonly ChosenImage[] };

export interface FileInput {
  /** @param to the image that an image becomes; the start image when absent */
  readonly addFiles: (files: readonly File[], to?: ImageName) => Promise<void>;
  /** The same for files with which the app was opened: an image can be undone as well. */
  readonly openFiles: (files: readonly File[]) => Promise<void>;
  /** Adds a LoRA of the library. */
  readonly pickLora: (name: string) => void;
  /** Says what was done, in the place of the notice. */
  readonly showInfo: (text: string) => void;
  /** Shows an error in the place of the notice. */
  readonly showError: (error: KinoraError) => void;
  readonly clearNotice: () => void;
  readonly notice: FileNotice | null;
  readonly dragging: boolean;
}

/**
 * Accepts files that are dropped or pasted anywhere on the page, or selected in a field: an image becomes
 * the start image, or in the field of the end image that one; several can become a video each, a `.safetensors` file a LoRA, and an MP4 made by Kinora restores its settings.
 *
 * @param show shows a past video: an MP4 becomes one
 */
export function useFileInput(
  form: FormState,
  change: Dispatch<FormAction>,
  show: (id: string) => void,
): FileInput {
  const [notice, setNotice] = useState<FileNotice | null>(null);
  const [dragging, setDragging] = useState(false);
  const hasImage = form.files.image !== null;
  const loraInput = useLoraInput(form, change);
  const showError = (error: KinoraError) => setNotice({ kind: 'error', error: error.toRecord() });

  async function addFiles(
    files: readonly File[],
    name: ImageName = 'image',
    opened = false,
  ): Promise<void> {
    setNotice(null);
    try {
      // A video first: Undo brings back what was there before all of them.
      for (const file of files.filter(isVideo)) await restoreSettings(file, files.some(isImage));
      const images: ChosenImage[] = [];
      for (const file of files.filter(isImage)) {
        const reading = readImage(file, file.name);
        images.push(await (name === 'image' ? reading : ofLastImage(reading)));
      }
      const [image] = images;
      if (image) {
        change(
          opened ? { type: 'replaced', by: image.name, image } : { type: 'imageSet', image, name },
        );
      }
      if (images.length > 1 && name === 'image') setNotice({ kind: 'images', images });
      const loras = files.filter(isLora);
      if (loras.length > 0) await loraInput.addFiles(loras);
    } catch (thrown) {
      showError(toKinoraError(thrown));
    }
  }

  /** @param brought whether an image came with the video */
  async function restoreSettings(file: File, brought: boolean): Promise<void> {
    // It is large and rarely used.
    const { readRequest } = await import('./restore-request');
    const { action, text, keep } = await readRequest(file, brought, hasImage);
    change(action);
    setNotice({ kind: 'info', text });
    const id = await keep();
    if (id) show(id);
  }

  const onFiles = useEffectEvent((event: Event, transfer: DataTransfer | null) => {
    const files = [...(transfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    const inEnd = event.target instanceof Element && event.target.closest('#last-image-field');
    void addFiles(files, inEnd ? 'lastImage' : 'image');
  });

  useEffect(() => {
    // Entering a child element fires `dragenter` for it and then `dragleave` for its parent.
    let depth = 0;
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

  const showInfo = (text: string) => setNotice({ kind: 'info', text });
  const pickLora = (name: string) => {
    setNotice(null);
    loraInput.pick(name).catch((thrown: unknown) => showError(toKinoraError(thrown)));
  };
  const openFiles = (files: readonly File[]) => addFiles(files, 'image', true);
  const clearNotice = () => setNotice(null);
  const actions = { addFiles, openFiles, pickLora, showError, showInfo, clearNotice };
  return useSteady({ ...useStable(actions), notice, dragging });
}

function isImage(file: File): boolean {
  return !isLora(file) && !isVideo(file);
}

function isLora(file: File): boolean {
  return file.name.toLowerCase().endsWith('.safetensors');
}

function isVideo(file: File): boolean {
  return file.type.startsWith('video/') || file.name.toLowerCase().endsWith('.mp4');
}
