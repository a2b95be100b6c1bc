import { Fragment } from 'react';
import {
  formatBytes,
  licencesOf,
  type ModelEntry,
  type Precision,
  type PrecisionChoice,
  sourcesFor,
} from '../../lib/contract';
import { Button } from '../shared/button';
import { later } from '../shared/later';
import { Problem } from '../shared/messages';
import { useTerms } from '../shared/terms-store';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { Choice } from '../shared/fields';
import { AdapterChoices } from './adapter-choices';
import { PlanSentence, PlanTable } from './download-plan';
import { Licence } from './licence';
import { Modal } from './modal';
import type { DownloadScope, Sheet } from './page-state';
import type { GpuMemory } from './use-gpu-memory';
import { fitText, memoryRange, precisionName } from './wording';
import '../texts/en/serve';
import { MeasureButton } from './measure-button';

// Most persons have accepted the terms before.
const TermsText = later(async () => (await import('../shared/terms-text')).TermsText);

/** What a download is and takes, before a byte of it is fetched. */
export function DownloadSheet(props: {
  sheet: Sheet;
  entry: ModelEntry;
  hub: string;
  gpu: GpuMemory;
  onMeasure: (bytes: number) => void;
  /** Another precision or other adapters: the sizes are asked for again. */
  onWanted: (scope: DownloadScope) => void;
  /** @param accepts whether the terms of use are accepted with it */
  onDownload: (scope: DownloadScope, accepts: boolean) => void;
  onClose: () => void;
}) {
  const { sheet, entry, hub, gpu, onWanted, onDownload, onClose } = props;
  const { manifest } = entry;
  const { plan, precision, adapters } = sheet;
  const scope = { precision, adapters };
  const sources = sourcesFor(manifest, precision, adapters);
  const known = plan.status === 'known' ? plan.plan : null;
  const { acceptance } = useTerms({ known: true });
  const asksTerms = acceptance === null;
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
        <Button className="primary" disabled={!fits} onClick={() => onDownload(scope, asksTerms)}>
          {t('models.download')}
        </Button>
      }
      close={t('shared.notNow')}
      onClose={onClose}
    >
      <div className="plan stack gap-12" aria-live="polite" aria-busy={plan.status === 'asking'}>
        {plan.status === 'asking' && (
          <>
            <p className="field-hint">{t('models.askingSizes')}</p>
            <progress aria-label={t('models.askingSizesLabel')} />
          </>
        )}
        {plan.status === 'failed' && (
          <Problem error={plan.error}>
            <Button onClick={() => onWanted(scope)}>{t('common.tryAgain')}</Button>
            {plan.error.code === 'HUB_UNREACHABLE' && (
              <>
                <Button onClick={() => leaveTo(`${manifest.id}-local`)}>
                  {t('models.useLocalFiles')}
                </Button>
                <Button onClick={() => leaveTo('hub')}>{t('models.changeHub')}</Button>
              </>
            )}
          </Problem>
        )}
        {known && <PlanSentence plan={known} precision={precisionName(manifest, precision)} />}
      </div>
      {asksTerms && <p className="field-hint">{t('models.sheetTerms')}</p>}
      <details className="more">
        <summary>{t(asksTerms ? 'models.termsAndLicences' : 'models.licences')}</summary>
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
        {asksTerms && <TermsText level={3} />}
      </details>
      <details className="more">
        <summary>{t('models.options')}</summary>
        <p>{manifestText(manifest.description)}</p>
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
        {known && <PlanTable plan={known} components={manifest.components} />}
      </details>
    </Modal>
  );
}

function hostOf(hub: string): string {
  return URL.canParse(hub) ? new URL(hub).host : hub;
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
      <div className="choices stack">
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
                {t('shared.gpuMemory')}: {fitText(choice, memory)}
              </small>
            </span>
          </Choice>
        ))}
      </div>
      <div className="mt-8 text-l">
        <MeasureButton gpu={gpu} onMeasure={() => props.onMeasure(most)} />
      </div>
    </fieldset>
  );
}
