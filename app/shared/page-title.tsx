'use client';

import { type TextKey, t } from '../texts';

/** The name of the app, in every language. */
export const brand = 'Kinora';

/** Title of the window, in the language of the page; the metadata of Next, from the server, is always English. */
export function PageTitle({ name }: { name?: TextKey }) {
  return <title>{name ? `${t(name)} · ${brand}` : brand}</title>;
}
