import { formatBytes, hasSafetyChecker, type ModelEntry } from '../../lib/contract';
import { isConverted } from '../../lib/pipeline/installation';
import { Fact } from '../shared/fact';
import { t } from '../texts';
import '../texts/en/models';
import '../texts/en/serve';
import { formatDate } from '../texts/format';
import { Licence } from './licence';
import { type ModelView, storedAdapters } from './model-view';
import { downloadSizes, formatRelativeError, precisionName } from './wording';

const origins = {
  bundled: 'models.comesWithKinora',
  listed: 'models.fromHub',
  added: 'models.addedByYou',
} as const;

/** What is known of a model, in short. */
export function ModelFacts(props: {
  entry: ModelEntry;
  view: ModelView;
  /** Name of another model whose safety checker serves this one; null without one. */
  sharedChecker: string | null;
}) {
  const { entry, view, sharedChecker } = props;
  const { manifest, origin, precision, stored } = entry;
  const { bytesStored, verifiedAt, worst } = view;
  const downloads = downloadSizes(manifest.choices);
  const types = [
    ...new Set(
      stored.filter(({ component }) => isConverted(component)).map(({ sourceType }) => sourceType),
    ),
  ];
  return (
    <dl className="facts">
      <Fact name={t('models.licence')}>
        <Licence {...manifest.licence} />
      </Fact>
      {/* It comes with the model: nothing is missing of one that is not here yet. */}
      {view.status !== 'absent' && (
        <Fact name={t('names.component.safety_checker.name')}>
          {hasSafetyChecker(entry)
            ? t('models.installed')
            : sharedChecker
              ? t('models.installedWith', { name: sharedChecker })
              : t('models.missing')}
        </Fact>
      )}
      <Fact name={t('models.origin')}>{t(origins[origin])}</Fact>
      {view.status === 'absent' && downloads && (
        <Fact name={t('models.download')}>{downloads}</Fact>
      )}
      {precision && <Fact name={t('serve.precision')}>{precisionName(manifest, precision)}</Fact>}
      {storedAdapters(entry).map(({ name, licence }) => (
        <Fact key={name} name={t('models.adapter')}>
          {t.rich(
            licence.commercial ? 'models.adapterLicence' : 'models.adapterLicenceRestricted',
            {
              name,
              licence: () => <Licence {...licence} />,
            },
          )}
        </Fact>
      ))}
      {types.length > 0 && <Fact name={t('models.madeFrom')}>{types.join(', ')}</Fact>}
      {bytesStored > 0 && <Fact name={t('models.inBrowser')}>{formatBytes(bytesStored)}</Fact>}
      {stored.length > 0 && (
        <Fact name={t('models.largestError')}>
          {worst ? (
            <span title={worst.tensor}>{formatRelativeError(worst.relativeError)}</span>
          ) : (
            t('models.noError')
          )}
        </Fact>
      )}
      {verifiedAt && (
        <Fact name={t('models.verified')}>
          <span className="tick">✓</span> <time dateTime={verifiedAt}>{formatDay(verifiedAt)}</time>
        </Fact>
      )}
    </dl>
  );
}

function formatDay(iso: string): string {
  return formatDate(iso, { dateStyle: 'medium', timeStyle: 'short' });
}
