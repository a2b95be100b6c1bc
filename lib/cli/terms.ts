import { KinoraError, termsVersion } from '../contract';
import type { Command } from './command';
import type { LibrarySession } from './session';

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
