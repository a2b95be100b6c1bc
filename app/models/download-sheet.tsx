import { Fragment, type ReactNode, useEffect, useRef } from 'react';
import { licencesOf, type ModelEntry, sourcesFor } from '../../lib/contract';
import { Problem } from '../shared/messages';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { AdapterChoices } from './adapter-choices';
import { Licence } from './licence';
import { Modal } from './modal';
import type { DownloadScope, Sheet } from './page-state';
import { PlanTable } from './plan-table';
import { PrecisionChoices } from './precision-choices';
import type { GpuMemory } from './use-gpu-memory';

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
