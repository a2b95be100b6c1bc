import { componentTexts, formatBytes } from '../../lib/contract/format';
import type { DownloadPlan } from '../../lib/contract/library';

/** Size and purpose of each part, and what the storage will look like afterwards. */
export function PlanTable({ plan }: { plan: DownloadPlan }) {
  const { parts, download, store, storage, left } = plan;
  const free = Math.max(0, storage.quota - storage.usage);
  const { atLeast = false } = storage;
  return (
    <>
      <p className="plan-sum">
        <strong>{formatBytes(download)} to fetch.</strong> It is converted while it arrives and kept
        in this browser's own storage: {formatBytes(store)}. {atLeast && 'At least '}
        {formatBytes(free)} are free now
        {left >= 0 && `; ${atLeast ? 'at least ' : ''}${formatBytes(left)} will be left`}.{' '}
        {left < 0 && atLeast && 'Should the storage get full, the download pauses. '}
        {storage.persistent
          ? 'The storage is persistent.'
          : 'Kinora asks the browser not to evict it.'}
      </p>
      {left < 0 && !atLeast && (
        <div className="problem" data-code="STORAGE_FULL">
          <p>
            <strong>
              There is not enough space: {formatBytes(store)} are needed, {formatBytes(free)} are
              free.
            </strong>{' '}
            Delete another model, or free {formatBytes(-left)} on this disk.
          </p>
        </div>
      )}
      <table className="plan-table">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col">To fetch</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ component, bytesLeft, files }) => (
            <tr key={component}>
              <th scope="row">
                {componentTexts[component].name}
                <small>{componentTexts[component].purpose}</small>
                <small className="file-name" title={files.map(({ name }) => name).join('\n')}>
                  {files.length === 1 ? files[0]?.name.split('/').pop() : `${files.length} files`}
                </small>
              </th>
              <td>{bytesLeft === 0 ? '✓ here' : formatBytes(bytesLeft)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Together</th>
            <td>{formatBytes(download)}</td>
          </tr>
        </tfoot>
      </table>
    </>
  );
}
