import type { LoraEntry } from '../../../lib/contract';
import type { Source } from '../../../lib/predictions/database';
import type { SourceLora } from '../../../lib/predictions/loras';
import { getLibrary } from '../../library';
import { t } from '../../texts';
import '../../texts/en/files';
import { loadData } from '../use-data';
import { type MadeWithLora, readImage, readSettings } from './files';
import type { ChosenImage, ChosenLora, FormAction, FormValues } from './form-state';
import { keepOpened } from './keep-opened';

/**
 * The request that a video of Kinora was made with, as far as the file, this browser's videos and its library have
 * it: what changes the form, what to say of it, and what keeps the video, with its id.
 *
 * @param brought whether an image came with the video
 * @param hasImage whether the form has one
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readRequest(
  file: File,
  brought: boolean,
  hasImage: boolean,
): Promise<{ action: FormAction; text: string; keep: () => Promise<string | null> }> {
  const settings = await readSettings(file);
  const { values, framing, image, lastImage, loras } = settings;
  const source = await findSource(values);
  const library = getLibrary().getSnapshot();
  const entries = library.status === 'ready' ? library.snapshot.loras : [];
  const restoredLoras = loras.map((lora, index) => findLora(lora, source?.loras[index], entries));
  const kept = restoredLoras.filter((lora) => lora !== null);
  const missing = loras.filter((_, index) => !restoredLoras[index]);
  const restored = brought ? null : await restoredImage(source, image);
  const inForm = hasImage || brought ? 'stays' : 'missing';
  const how = restored ? (source ? 'found' : 'contained') : inForm;
  const sentences = [t(`files.restored.${how}`, { file: file.name })];
  const end = await restoredEnd(source, lastImage);
  if (lastImage && !end) sentences.push(t('files.endMissing'));
  for (const lora of missing) sentences.push(missingText(lora, entries));
  return {
    action: {
      type: 'replaced',
      by: file.name,
      values,
      loras: kept.length > 0 ? kept : undefined,
      image: restored ? { ...restored, framing } : undefined,
      lastImage: end,
    },
    text: sentences.join(' '),
    keep: () => keepOpened(file, settings),
  };
}

/** Image and name of the prediction of this browser that the settings are of; undefined without one. */
async function findSource({ prompt, seed }: Partial<FormValues>): Promise<Source | undefined> {
  const { getRunner } = await loadData();
  const { store } = getRunner();
  const list = await store.list().catch(() => []);
  const prediction = list.find(
    ({ parameters }) => parameters.prompt === prompt && String(parameters.seed) === seed,
  );
  return prediction && store.source(prediction.id);
}

/** The image of the prediction in this browser, else the small one in the file. */
async function restoredImage(source: Source | undefined, small: Blob | undefined) {
  if (source) return { name: source.imageName, file: source.image };
  return small ? readImage(small, 'start-image.jpg') : null;
}

/** The end image of the prediction in this browser, else the small one in the file; null where neither has it. */
async function restoredEnd(
  source: Source | undefined,
  last: Awaited<ReturnType<typeof readSettings>>['lastImage'],
): Promise<ChosenImage | null | undefined> {
  if (!last) return last;
  const { framing, file } = last;
  if (source?.lastImage) return { name: t('files.endImage'), file: source.lastImage, framing };
  return file ? { ...(await readImage(file, t('files.endImage'))), framing } : null;
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
  const place = source === '' ? '' : ` ${t('files.loraSource', values)}`;
  return t(differs ? 'files.loraDiffers' : 'files.loraMissing', values) + place;
}
