import { type Dispatch, useCallback, useEffect, useEffectEvent, useState } from 'react';
import { type ErrorRecord, type KinoraError, toKinoraError } from '../../../lib/contract/errors';
import type { LoraEntry } from '../../../lib/contract/library';
import type { Source } from '../../../lib/predictions/database';
import type { SourceLora } from '../../../lib/predictions/loras';
import { getLibrary } from '../../library';
import { t } from '../../texts';
import '../../texts/en/form';
import { loadData } from '../use-data';
import { type MadeWithLora, readImage, readSettings } from './files';
import type { ChosenImage, ChosenLora, FormAction, FormState, FormValues } from './form-state';
import { useLoraInput } from './use-loras';

/** The outcome of the last files. */
export type FileNotice =
  | { readonly kind: 'error'; readonly error: ErrorRecord }
  | { readonly kind: 'info'; readonly text: string }
  /** Several images came at once: the first one is in the form, each can become a video. */
  | { readonly kind: 'images'; readonly images: readonly ChosenImage[] };

export interface FileInput {
  readonly addFiles: (files: readonly File[]) => Promise<void>;
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
 * the start image, several can become a video each, a `.safetensors` file a LoRA, and an MP4 made by Kinora restores its settings.
 */
export function useFileInput(form: FormState, change: Dispatch<FormAction>): FileInput {
  const [notice, setNotice] = useState<FileNotice | null>(null);
  const [dragging, setDragging] = useState(false);
  const hasImage = form.files.image !== null;
  const loraInput = useLoraInput(form, change);
  const showError = useCallback(
    (error: KinoraError) => setNotice({ kind: 'error', error: error.toRecord() }),
    [],
  );

  async function addFiles(files: readonly File[], opened = false): Promise<void> {
    setNotice(null);
    try {
      // A video first: Undo brings back what was there before all of them.
      for (const file of files.filter(isVideo)) await restoreSettings(file, files.some(isImage));
      const images: ChosenImage[] = [];
      for (const file of files.filter(isImage)) images.push(await readImage(file, file.name));
      const [image] = images;
      if (image) {
        change(opened ? { type: 'replaced', by: image.name, image } : { type: 'imageSet', image });
      }
      if (images.length > 1) setNotice({ kind: 'images', images });
      const loras = files.filter(isLora);
      if (loras.length > 0) await loraInput.addFiles(loras);
    } catch (thrown) {
      showError(toKinoraError(thrown));
    }
  }

  /** @param brought whether an image came with the video */
  async function restoreSettings(file: File, brought: boolean): Promise<void> {
    const { values, framing, image, loras } = await readSettings(file);
    const source = await findSource(values);
    const library = getLibrary().getSnapshot();
    const entries = library.status === 'ready' ? library.snapshot.loras : [];
    const found = loras.map((lora, index) => findLora(lora, source?.loras[index], entries));
    const kept = found.filter((lora) => lora !== null);
    const missing = loras.filter((_, index) => !found[index]);
    const restored = brought ? null : await restoredImage(source, image);
    change({
      type: 'replaced',
      by: file.name,
      values,
      loras: kept.length > 0 ? kept : undefined,
      image: restored ? { ...restored, framing } : undefined,
    });
    const inForm = hasImage || brought ? 'stays' : 'missing';
    const how = restored ? (source ? 'found' : 'contained') : inForm;
    const sentences = [t(`form.restored.${how}`, { file: file.name })];
    for (const lora of missing) sentences.push(missingText(lora, entries));
    setNotice({ kind: 'info', text: sentences.join(' ') });
  }

  const onFiles = useEffectEvent((event: Event, transfer: DataTransfer | null) => {
    const files = [...(transfer?.files ?? [])];
    if (files.length === 0) return;
    event.preventDefault();
    void addFiles(files);
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
  const openFiles = (files: readonly File[]) => addFiles(files, true);
  const clearNotice = () => setNotice(null);
  return { addFiles, openFiles, pickLora, showError, showInfo, clearNotice, notice, dragging };
}

/** Image and name of the prediction of this browser that the settings are of; undefined without one. */
async function findSource({ prompt, seed }: Partial<FormValues>): Promise<Source | undefined> {
  const { getRunner } = await loadData();
  const { store } = getRunner();
  // Without a database there is no earlier video.
  const list = await store.list().catch(() => []);
  const made = list.find(
    ({ parameters }) => parameters.prompt === prompt && String(parameters.seed) === seed,
  );
  return made && store.source(made.id);
}

/** The image of the prediction in this browser, else the small one in the file. */
async function restoredImage(source: Source | undefined, small: Blob | undefined) {
  if (source) return { name: source.imageName, file: source.image };
  return small ? readImage(small, 'start-image.jpg') : null;
}

/** The LoRA that a video was made with: of the prediction in this browser, or of the library; null where neither has it. */
function findLora(
  { path, scale, sha256 }: MadeWithLora,
  own: SourceLora | undefined,
  entries: readonly LoraEntry[],
): ChosenLora | null {
  const chosen = { key: crypto.randomUUID(), scale: String(scale) };
  const same = entries.find((entry) =>
    sha256 === undefined ? entry.name === path : entry.sha256 === sha256,
  );
  if (same) return { ...chosen, name: same.name, file: null };
  return own?.name === path ? { ...chosen, name: path, file: own.file } : null;
}

/** Says which LoRA is missing, and where it is found. */
function missingText(
  { path, sha256 = '', source = '' }: MadeWithLora,
  entries: readonly LoraEntry[],
): string {
  const values = { name: path, sha256: sha256.slice(0, 12), source };
  const differs = entries.some(({ name }) => name === path);
  const place = source === '' ? '' : ` ${t('form.loraSource', values)}`;
  return t(differs ? 'form.loraDiffers' : 'form.loraMissing', values) + place;
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
