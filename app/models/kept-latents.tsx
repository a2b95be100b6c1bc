import { useEffect, useState } from 'react';
import { formatBytes } from '../../lib/contract/format';
import {
  keptLatentsLimit,
  type SavedRunBytes,
  savedRunBytes,
  sweepRuns,
} from '../../lib/predictions/saved-runs';
import { getLibrary } from '../library';
import { getRunner } from '../runner';

/** What saved runs take of the storage, and how to free it. */
export function KeptLatents() {
  const [bytes, setBytes] = useState<SavedRunBytes | null>(null);
  useEffect(() => {
    // What cannot be read is not shown.
    savedRunBytes(getRunner().store).then(setBytes, () => {});
  }, []);
  const free = async () => {
    const { store } = getRunner();
    await sweepRuns(store, 0);
    setBytes(await savedRunBytes(store));
    await getLibrary().refresh();
  };
  if (!bytes) return null;
  return (
    <>
      <p className="measure">
        Latents for Refine: {formatBytes(bytes.latents)} of at most {formatBytes(keptLatentsLimit)}
      </p>
      <p className="field-hint">
        Kept of ultra-fast videos, to decode them again in full quality; the oldest go first.
        {bytes.interrupted > 0 &&
          ` Interrupted videos take ${formatBytes(bytes.interrupted)} more, until they are resumed or deleted.`}
      </p>
      <div className="actions">
        <button
          type="button"
          disabled={bytes.latents === 0}
          onClick={() => void free().catch(() => {})}
        >
          Delete kept latents
        </button>
      </div>
    </>
  );
}
