import { statfs } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import {
  type AdapterChoices,
  adapterOffers,
  componentName,
  type DownloadPlan,
  formatBytes,
  guidanceOffers,
  KinoraError,
  licencesOf,
  type Precision,
  sourcesFor,
  type ToolManifest,
  termsVersion,
} from '../contract';
import { isConverted } from '../pipeline/installation';
import type { Command } from './command';
import type { LibrarySession } from './session';

/** Facts that a person sees before a download of gigabytes. */
export interface Offer {
  readonly manifest: ToolManifest;
  readonly precision: Precision;
  readonly adapters?: AdapterChoices | undefined;
  readonly plan: DownloadPlan;
  readonly hub: string;
  /** Folder of the profile. */
  readonly home: string;
}

/** Bytes that can still be written on the disk of a folder. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** The plan with the free space of the disk; the browser knows only its quota. */
export function withDiskSpace(plan: DownloadPlan, free: number): DownloadPlan {
  const { usage, quota, persistent } = plan.storage;
  const storage = { usage, quota: Math.min(quota, usage + free), persistent };
  return { ...plan, storage, left: storage.quota - usage - plan.store };
}

/** The text before a download: what is fetched, its licence, its size and where it is stored. */
export function offerText({ manifest, precision, adapters, plan, hub, home }: Offer): string {
  const { name, choices } = manifest;
  const begun = plan.parts.reduce((sum, part) => sum + part.bytesTotal - part.bytesLeft, 0);
  const choice = choices.find((one) => one.precision === precision)?.name ?? precision;
  const free = Math.max(0, plan.storage.quota - plan.storage.usage);
  const sources = sourcesFor(manifest, precision, adapters);
  const rows: [string, string][] = [
    ...licenceRows({ ...manifest, sources }),
    ...limitRows({ ...manifest, sources }),
    ['from', hub],
    ['to', home],
    ...(plan.parts.some(({ component }) => isConverted(component))
      ? [['precision', choice] satisfies [string, string]]
      : []),
    ['download', formatBytes(plan.download) + (begun ? `; ${formatBytes(begun)} are here` : '')],
    ['on disk', formatBytes(plan.store)],
    ['free', `${formatBytes(free)}, ${formatBytes(Math.max(0, plan.left))} afterwards`],
  ];
  return [
    begun ? `${name} is not here completely:` : `${name} is not here yet:`,
    '',
    ...plan.parts.map((part) => partLine(part, manifest)),
    '',
    ...rows.map(([label, value]) => `  ${label.padEnd(14)} ${value}`),
    '',
  ].join('\n');
}

/** A row for each licence; with several, it names what each is of. */
function licenceRows(manifest: ToolManifest): [string, string][] {
  const all = licencesOf(manifest);
  return all.map(({ licence: { name, url }, repositories }) => {
    const of = all.length > 1 && repositories.length > 0 ? ` (${repositories.join(', ')})` : '';
    return ['licence', [name, url].filter(Boolean).join(', ') + of];
  });
}

/** What the licences of the adapters that are fetched forbid. */
function limitRows(manifest: ToolManifest): [string, string][] {
  return [...adapterOffers(manifest), ...guidanceOffers(manifest)]
    .filter(({ adapter }) => !adapter.licence.commercial)
    .map(({ adapter }) => ['note', `${adapter.name} may not be used commercially`]);
}

function partLine(
  { component, files, bytesLeft, bytesTotal }: DownloadPlan['parts'][number],
  manifest: Offer['manifest'],
) {
  const known = bytesLeft === 0 ? 'here' : formatBytes(bytesLeft);
  const size = bytesTotal === 0 ? 'not on the hub' : known;
  const from = files.length === 1 ? files[0]?.name : `${files.length} files`;
  const rest = bytesLeft > 0 && bytesLeft < bytesTotal ? ` of ${formatBytes(bytesTotal)}` : '';
  return `  ${componentName(component, manifest).padEnd(14)} ${size.padStart(8)}${rest}  ${from}`;
}

/** A terminal that can ask a question. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean };
}

/**
 * Asks once whether to go on. Every answer but yes means no.
 *
 * @param what what would be downloaded; named in the error where there is no terminal
 * @throws KinoraError `MODEL_NOT_INSTALLED` without a terminal, or when the answer is no
 */
export async function askToDownload(
  what: string,
  { input, output }: Terminal,
  signal: AbortSignal,
): Promise<void> {
  if (!(input.isTTY && output.isTTY)) {
    throw new KinoraError('MODEL_NOT_INSTALLED', `${what} has to be downloaded first.`, {
      remedy: 'Run it again with --yes to agree to the download, or in a terminal to be asked.',
    });
  }
  const asking = createInterface({ input, output });
  // A terminal in raw mode sends Ctrl-C as a key.
  asking.on('SIGINT', () => process.emit('SIGINT'));
  try {
    const answer = await asking.question('Download it? [y/N] ', { signal });
    if (/^y(es)?$/i.test(answer.trim())) return;
  } finally {
    asking.close();
  }
  throw new KinoraError('MODEL_NOT_INSTALLED', `${what} was not downloaded.`, {
    remedy: 'Nothing was fetched. Run it again when you like.',
  });
}

/** Where the terms can be read: on the page of a running app, and in the terminal. */
const readThem = 'Read them at /terms of the app, or with `npm run models -- terms`.';

/**
 * The terms of use have to be accepted before the first download of a real model, and before a tab serves.
 *
 * @param accept whether `--accept-terms` was given
 * @param named `KINORA_ACCEPT_TERMS`: a version that is accepted
 * @throws KinoraError `TERMS_NOT_ACCEPTED`
 */
export async function ensureTerms(
  command: Pick<Command, 'say'>,
  { page }: LibrarySession,
  accept: boolean,
  named: string | undefined = process.env.KINORA_ACCEPT_TERMS,
): Promise<void> {
  if (await page.call('termsAccepted')) return;
  if (!accept && named !== termsVersion) throw notAccepted(named);
  await page.call('acceptTerms');
  command.say(`Accepted the terms of use, version ${termsVersion}.`);
}

function notAccepted(named: string | undefined): KinoraError {
  const other = named ? ` KINORA_ACCEPT_TERMS names the version ${named}.` : '';
  return new KinoraError(
    'TERMS_NOT_ACCEPTED',
    `The terms of use, version ${termsVersion}, have not been accepted here.${other} ${readThem}`,
    { remedy: `Run it again with --accept-terms, or set KINORA_ACCEPT_TERMS=${termsVersion}.` },
  );
}
