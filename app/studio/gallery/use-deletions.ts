import { useCallback, useState } from 'react';
import { loadData } from '../use-data';

/** Predictions that were deleted together, and come back together. */
export interface Deletion {
  readonly ids: readonly string[];
  /** Where it was asked for: the focus stays there. */
  readonly from: 'stage' | 'gallery';
}

export interface Deletions {
  /** Those that can be undone, the last one at the end. */
  readonly list: readonly Deletion[];
  /** The last one that was undone. */
  readonly undone: Deletion | null;
  /** @throws KinoraError of the database */
  readonly remove: (ids: readonly string[], from: Deletion['from']) => Promise<void>;
  /** Brings back what the last deletion took. */
  readonly undo: () => void;
  /** Deletes for good. */
  readonly forget: () => void;
}

/** Deletes predictions, and keeps the deletions for a while, so that they can be undone one after another. */
export function useDeletions(on: {
  removed: (deletion: Deletion) => void;
  restored: (deletion: Deletion) => void;
}): Deletions {
  const [list, setList] = useState<readonly Deletion[]>([]);
  const [undone, setUndone] = useState<Deletion | null>(null);

  async function remove(ids: readonly string[], from: Deletion['from']): Promise<void> {
    const { getRunner } = await loadData();
    const removed = await getRunner().store.remove(ids);
    if (removed.length === 0) return;
    const deletion = { ids: removed, from };
    setList((before) => [...before, deletion]);
    on.removed(deletion);
  }

  async function restore(deletion: Deletion): Promise<void> {
    const { getRunner } = await loadData();
    const ids = await getRunner().store.restore(deletion.ids);
    if (ids.length === 0) return;
    setUndone(deletion);
    on.restored(deletion);
  }

  const undo = () => {
    const last = list.at(-1);
    if (!last) return;
    setList(list.slice(0, -1));
    // What cannot be restored stays in the trash until the next start of the page.
    restore(last).catch(() => {});
  };

  const forget = useCallback(() => {
    setList([]);
    // What cannot be deleted now is deleted at the next start of the page.
    loadData()
      .then(({ getRunner }) => getRunner().store.purge(list.flatMap(({ ids }) => ids)))
      .catch(() => {});
  }, [list]);

  return { list, undone, remove, undo, forget };
}
