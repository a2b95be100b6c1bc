import { type DownloadPlan, formatBytes, type ModelComponent } from '../../lib/contract';
import { StoredValue } from '../shared/stored-value';
import { durationText } from '../studio/form/forecast';
import { t } from '../texts';
import '../texts/en/models';
import { componentText } from './wording';

/** Bytes per second of the last download of this browser; null before the first one. */
export const lineSpeed = new StoredValue<number | null>('kinora:line', null, (json) =>
  typeof json === 'number' && json > 0 ? json : undefined,
);
/** The same of a usual line, 100 Mbit/s. */
const usualSpeed = 12.5e6;

/** How much is to be fetched and how long that takes, or that there is no space for it. */
export function PlanSentence({ plan, precision }: { plan: DownloadPlan; precision: string }) {
  const { download, store, storage, left } = plan;
  const free = Math.max(0, storage.quota - storage.usage);
  const speed = lineSpeed.getSnapshot();
  return (
    <>
      <p className="plan-sum">
        {t.rich('models.fetchSentence', {
          precision,
          bytes: formatBytes(download),
          time: durationText({
            seconds: download / (speed ?? usualSpeed),
            measured: speed !== null,
          }),
          line: speed === null ? 'usual' : 'known',
          strong: (inside) => <strong>{inside}</strong>,
        })}
      </p>
      {left < 0 && !storage.atLeast && (
        <div className="problem" data-code="STORAGE_FULL">
          <p>
            <strong>
              {t('models.noSpace', { needed: formatBytes(store), free: formatBytes(free) })}
            </strong>{' '}
            {t('models.noSpaceRemedy', { bytes: formatBytes(-left) })}
          </p>
        </div>
      )}
    </>
  );
}

/** Size and purpose of each part, and what the storage will look like afterwards. */
export function PlanTable(props: { plan: DownloadPlan; components: readonly ModelComponent[] }) {
  const { plan, components } = props;
  const { parts, download, store, storage, left } = plan;
  const free = Math.max(0, storage.quota - storage.usage);
  const { atLeast = false } = storage;
  const amountOf = (bytes: number) =>
    atLeast ? t('models.atLeast', { bytes: formatBytes(bytes) }) : formatBytes(bytes);
  return (
    <>
      <p className="field-hint">
        {t('models.keptHere', { bytes: formatBytes(store) })}{' '}
        {t(left >= 0 ? 'models.freeAndLeft' : 'models.freeNow', {
          free: amountOf(free),
          left: amountOf(left),
        })}{' '}
        {left < 0 && atLeast && `${t('models.mayPause')} `}
        {storage.persistent ? t('models.isPersistent') : t('models.asksToKeep')}
      </p>
      <table className="plan-table full text-l">
        <thead>
          <tr>
            <th scope="col">{t('models.part')}</th>
            <th scope="col">{t('models.toFetchColumn')}</th>
          </tr>
        </thead>
        <tbody>
          {parts.map(({ component, bytesLeft, bytesTotal, files }) => (
            <tr key={component}>
              <th scope="row">
                {componentText(component, 'name', components)}
                <small>{componentText(component, 'purpose', components)}</small>
                <small
                  className="file-name min-0 clip text-l"
                  title={files.map(({ name }) => name).join('\n')}
                >
                  {files.length === 1
                    ? files[0]?.name.split('/').pop()
                    : t('models.files', { count: files.length })}
                </small>
              </th>
              <td>
                {bytesTotal === 0
                  ? t('models.notOnHub')
                  : bytesLeft === 0
                    ? t('models.tickHere')
                    : formatBytes(bytesLeft)}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t('models.together')}</th>
            <td>{formatBytes(download)}</td>
          </tr>
        </tfoot>
      </table>
    </>
  );
}
