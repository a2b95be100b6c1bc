import { useEffect } from 'react';
import { getRunner } from '../runner';

/** How long the offer stands, in milliseconds. */
const offerMs = 10_000;

/** Offers to bring a deleted prediction back; afterwards frees its bytes. */
export function UndoToast({ id, onGone }: { id: string; onGone: () => void }) {
  useEffect(() => {
    const timer = setTimeout(() => {
      onGone();
      // Only what is as old as this one: another tab's offer may still stand.
      void getRunner()
        .store.purge(offerMs - 500)
        .catch(() => {});
    }, offerMs);
    return () => clearTimeout(timer);
  }, [onGone]);
  const undo = () => {
    void getRunner()
      .store.restore(id)
      .catch(() => {});
    onGone();
  };
  return (
    <div className="toast" role="status">
      <span>Video deleted.</span>
      <button type="button" onClick={undo}>
        Undo
      </button>
    </div>
  );
}
