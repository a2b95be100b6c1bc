import type { Page } from 'playwright';
import { expect } from 'playwright/test';

/**
 * Reads or changes one object store of the app's database from a page of the app.
 *
 * @param store name of the object store
 * @param rows what is put into it, if anything
 * @returns all rows of the store afterwards
 * @throws if the app has not made the database yet, or a row is refused
 */
export function databaseRows(
  page: Page,
  store: string,
  rows: readonly object[] = [],
): Promise<Readonly<Record<string, unknown>>[]> {
  return page.evaluate(
    ({ store, rows }) =>
      new Promise<Record<string, unknown>[]>((resolve, reject) => {
        const opening = indexedDB.open('kinora');
        // Without this, opening it before the app does would make it without its stores.
        opening.onupgradeneeded = () => opening.transaction?.abort();
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const database = opening.result;
          const transaction = database.transaction(store, 'readwrite');
          for (const row of rows) transaction.objectStore(store).put(row);
          const all = transaction.objectStore(store).getAll();
          transaction.onabort = () => reject(transaction.error);
          transaction.oncomplete = () => {
            database.close();
            resolve(all.result);
          };
        };
      }),
    { store, rows },
  );
}

/** Waits until the studio has read its database, which it makes when somebody moves the pointer. */
export async function untilRead(page: Page): Promise<void> {
  await page.mouse.move(1, 1);
  await expect(() => databaseRows(page, 'drafts')).toPass();
  await page.locator('.stage:not(.loading)').waitFor();
}

/**
 * Puts rows into the app's database while no page of the app with a database of its own is open, which
 * could write over them: the studio saves its form whenever it is left.
 */
export async function storeRows(page: Page, store: string, rows: readonly object[]): Promise<void> {
  await untilRead(page);
  await page.goto('/terms');
  await databaseRows(page, store, rows);
}
