import type { messages } from './en';
import common from './en/common.json';
import { names } from './en/names';
import shared from './en/shared.json';

/**
 * The English texts that this page has loaded: the areas of every page, and those that its scripts import, such as
 * `./en/models`. A script imports the areas whose texts it uses.
 */
export const english = { common, shared, names } as typeof messages;

/** Adds areas. */
export function addTexts(areas: Partial<typeof messages>): void {
  Object.assign(english, areas);
}
