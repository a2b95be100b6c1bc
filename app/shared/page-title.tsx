'use client';

import { type TextKey, t } from '../texts';
import { brand } from './brand';

/** Title of the window, in the language of the page; the metadata of Next, from the server, is always English. */
export function PageTitle({ name }: { name?: TextKey }) {
  return <title>{name ? `${t(name)} · ${brand}` : brand}</title>;
}
