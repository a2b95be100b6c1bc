import {
  KinoraError,
  type TermsAcceptance,
  termsAcceptanceSchema,
  termsSha256,
  termsVersion,
} from '../contract';
import { opfsFolder, type StoreFolder } from '../weights/store';
import { readRecord } from '../weights/store/folder';

/** Name of the folder of the acceptance in the browser's private file system. */
export const termsFolder = 'terms';
const recordFile = 'acceptance.json';

/**
 * The acceptance of the present terms on this device; null where they were not accepted, or only an
 * earlier version. For pages and workers.
 */
export async function readAcceptance(
  folder: StoreFolder = opfsFolder(termsFolder),
): Promise<TermsAcceptance | null> {
  const record = await readRecord(folder, recordFile, termsAcceptanceSchema.parse);
  return record?.version === termsVersion ? record : null;
}

/** Records on this device that the present terms were accepted. @throws KinoraError `STORAGE_FULL` */
export async function acceptTerms(
  folder: StoreFolder = opfsFolder(termsFolder),
): Promise<TermsAcceptance> {
  const at = new Date().toISOString();
  const record = { version: termsVersion, sha256: await termsSha256(), at };
  await folder.writeText(recordFile, JSON.stringify(record));
  return record;
}

/** @throws KinoraError `TERMS_NOT_ACCEPTED` */
export async function requireTerms(folder: StoreFolder): Promise<void> {
  if (!(await readAcceptance(folder))) throw new KinoraError('TERMS_NOT_ACCEPTED');
}
