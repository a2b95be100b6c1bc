import { Fragment, type ReactNode, useEffect, useRef } from 'react';
import {
  type DownloadPlan,
  formatBytes,
  licencesOf,
  type ModelComponent,
  type ModelEntry,
  type Precision,
  type PrecisionChoice,
  sourcesFor,
} from '../../lib/contract';
import { Problem } from '../shared/messages';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { Choice } from '../shared/fields';
import { AdapterChoices } from './adapter-choices';
import { Licence } from './licence';
import { Modal } from './modal';
import type { DownloadScope, Sheet } from './page-state';
import type { GpuMemory } from './use-gpu-memory';
import { componentText, fitSentence, memoryRange } from './wording';
import '../texts/en/serve';
import { MeasureButton } from './measure-button';

/** What a download is and takes, before a byte of it is fetched. */
export function DownloadSheet(props: {
  sheet: Sheet;
  entry: ModelEntry;
  hub: string;
  gpu: GpuMemory;
  onMeasure: (bytes: number) => void;
  /** Another precision or other adapters: the sizes are asked for again. */
  onWanted: (scope: DownloadScope) => void;
  onDownload: (scope: DownloadScope) => void;
  onClose: () => void;
}) {
  const { sheet, entry, hub, gpu, onWanted, onDownload, onClose } = props;
  const { manifest } = entry;
  const { plan, precision, adapters } = sheet;
  const scope = { precision, adapters };
  const sources = sourcesFor(manifest, precision, adapters);
  const known = plan.status === 'known' ? plan.plan : null;
  /** Closes the sheet, and unfolds what is on the page. */
  const leaveTo = (id: string) => {
    onClose();
    // The dialog gives the focus back when it is gone.
    requestAnimationFrame(() => {
      const target = document.getElementById(id);
      const section = target?.closest('details');
      if (section) section.open = true;
      target?.focus();
    });
  };
  const fits = known !== null && (known.left >= 0 || known.storage.atLeast === true);
  return (
    <Modal
      title={t('models.downloadName', { name: manifest.name })}
      isLong
      width={620}
      className="sheet"
      buttons={
        <button
          type="button"
          className="primary"
          disabled={!fits}
          onClick={() => onDownload(scope)}
        >
          {t('models.download')}
        </button>
      }
      close={t('shared.notNow')}
      onClose={onClose}
    >
      <p>{manifestText(manifest.description)}</p>
      <p className="field-hint">
        {t.rich('models.hubLicences', {
          host: hostOf(hub),
          licences: () =>
            licencesOf({ ...manifest, sources })
              .filter(({ repositories }) => repositories.length > 0)
              .map(({ licence, repositories }, i) => (
                <Fragment key={licence.name + licence.url}>
                  {i > 0 && t('models.semicolon')}
                  {t.rich('models.repositoryLicence', {
                    repositories: repositories.join(t('models.comma')),
                    licence: () => <Licence {...licence} />,
                  })}
                </Fragment>
              )),
        })}
      </p>
      {manifest.choices.length > 0 && (
        <PrecisionChoices
          choices={manifest.choices}
          chosen={precision}
          gpu={gpu}
          onChoose={(chosen) => onWanted({ ...scope, precision: chosen })}
          onMeasure={props.onMeasure}
        />
      )}
      <AdapterChoices
        entry={entry}
        chosen={adapters ?? []}
        onChoose={(chosen) => onWanted({ ...scope, adapters: chosen })}
      />
      <div className="plan stack gap-12" aria-live="polite" aria-busy={plan.status === 'asking'}>
        {plan.status === 'asking' && (
          <>
            <p className="field-hint">{t('models.askingSizes')}</p>
            <progress aria-label={t('models.askingSizesLabel')} />
          </>
        )}
        {plan.status === 'failed' && (
          <InView>
            <Problem error={plan.error}>
              <button type="button" onClick={() => onWanted(scope)}>
                {t('common.tryAgain')}
              </button>
              {plan.error.code === 'HUB_UNREACHABLE' && (
                <>
                  <button type="button" onClick={() => leaveTo(`${manifest.id}-local`)}>
                    {t('models.useLocalFiles')}
                  </button>
                  <button type="button" onClick={() => leaveTo('hub')}>
                    {t('models.changeHub')}
                  </button>
                </>
              )}
            </Problem>
          </InView>
        )}
        {known && <PlanTable plan={known} components={manifest.components} />}
      </div>
    </Modal>
  );
}

/** The element that must not stay below the edge of a small screen. */
function InView({ children }: { children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.scrollIntoView({ block: 'end' });
  }, []);
  return <div ref={place}>{children}</div>;
}

function hostOf(hub: string): string {
  return URL.canParse(hub) ? new URL(hub).host : hub;
}

/** Size and purpose of each part, and what the storage will look like afterwards. */
function PlanTable(props: { plan: DownloadPlan; components: readonly ModelComponent[] }) {
  const { plan, components } = props;
  const { parts, download, store, storage, left } = plan;
  const free = Math.max(0, storage.quota - storage.usage);
  const { atLeast = false } = storage;
  const amountOf = (bytes: number) =>
    atLeast ? t('models.atLeast', { bytes: formatBytes(bytes) }) : formatBytes(bytes);
  return (
    <>
      <p className="plan-sum">
        <strong>{t('models.toFetch', { bytes: formatBytes(download) })}</strong>{' '}
        {t('models.keptHere', { bytes: formatBytes(store) })}{' '}
        {t(left >= 0 ? 'models.freeAndLeft' : 'models.freeNow', {
          free: amountOf(free),
          left: amountOf(left),
        })}{' '}
        {left < 0 && atLeast && `${t('models.mayPause')} `}
        {storage.persistent ? t('models.isPersistent') : t('models.asksToKeep')}
      </p>
      {left < 0 && !atLeast && (
        <div className="problem" data-code="STORAGE_FULL">
          <p>
            <strong>
              {t('models.noSpace', { needed: formatBytes(store), free: formatBytes(free) })}
            </strong>{' '}
            {t('models.noSpaceRemedy', { bytes: formatBytes(-left) })}
          </p>
        </div>
      )}
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

/** Which precision to fetch, with the GPU memory that each needs. */
function PrecisionChoices(props: {
  choices: readonly PrecisionChoice[];
  chosen: Precision;
  gpu: GpuMemory;
  onChoose: (precision: Precision) => void;
  /** Asks the GPU whether it gives so many bytes, or how many. */
  onMeasure: (most: number) => void;
}) {
  const { choices, chosen, gpu, onChoose } = props;
  const memory = gpu.status === 'measured' ? gpu.bytes : null;
  const most = Math.max(...choices.map((choice) => memoryRange(choice).full));
  return (
    <fieldset className="field">
      <legend>{t('serve.precision')}</legend>
      <div className="choices stacked">
        {choices.map((choice) => (
          <Choice
            key={choice.precision}
            name="precision"
            value={choice.precision}
            checked={choice.precision === chosen}
            onChange={() => onChoose(choice.precision)}
          >
            <span>
              {manifestText(choice.name)}
              <small>
                {manifestText(choice.description)}{' '}
                {choice.download &&
                  `${t('models.aboutToFetch', { bytes: formatBytes(choice.download) })} `}
                {fitSentence(choice, memory)}
              </small>
            </span>
          </Choice>
        ))}
      </div>
      {choices.length > 1 && choices.every((choice) => memoryRange(choice).full === most) && (
        <p className="field-hint">{t('models.sameMemory')}</p>
      )}
      <div className="mt-8 text-l">
        <MeasureButton gpu={gpu} onMeasure={() => props.onMeasure(most)} />
      </div>
    </fieldset>
  );
}
